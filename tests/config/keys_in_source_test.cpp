// The table of keys beside the source: what it lists is read, and what messages name is listed.
#include <catch.hpp>
#include <regex>
#include <set>

#include "config/keys.h"
#include "paths.h"
#include "tests/config/example.h"

using namespace dgc;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sources(const std::vector<std::string>& folders) {
  std::vector<fs::path> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(DGC_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".cpp" || extension == ".h" || extension == ".cu" || extension == ".cuh") {
        files.push_back(entry.path());
      }
    }
  }
  return files;
}

// Without comments, which may name what no code reads.
std::string code_of(const fs::path& file) {
  static const std::regex comment("(^|[^:])//[^\n]*");
  return std::regex_replace(read_text_file(file.string(), 1 << 24), comment, "$1");
}

std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) found.insert((*at)[1]);
  return found;
}

std::string leaf(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// A key or a section.
bool is_listed(const std::string& path) {
  return std::ranges::any_of(config_keys(),
                             [&](const Key& key) { return key.path == path || key.path.starts_with(path + "."); });
}

bool is_file(const std::string& path) {
  const std::string extension = leaf(path);
  return extension == "h" || extension == "md" || extension == "safetensors";
}

}  // namespace

// Everything above and below src/config.
const std::vector<std::string> kReaders = {"src/layers", "src/models", "src/optim", "src/data",    "src/run",
                                           "src/tasks",  "src/train",  "src/tools", "src/commands"};

// A key's field has the key's name. Names that several keys share are read when one of them is.
TEST_CASE("every key is read by what trains, not only by what checks it", "[config]") {
  static const std::regex member(R"((?:\.|->|::)([a-z_]+)\b)");
  std::set<std::string> read;
  for (const fs::path& file : sources(kReaders)) read.merge(matches(code_of(file), member));
  for (const Keys* keys : {&config_keys(), &layer_keys()}) {
    for (const Key& key : *keys) {
      CAPTURE(key.path);
      CHECK(read.contains(leaf(key.path)));
    }
  }
  CHECK_FALSE(read.contains("deterministic"));  // which nothing read
}

TEST_CASE("every key that a message names is a key", "[config]") {
  static const std::regex text(R"re("((?:[^"\\\n]|\\.)*)")re");
  static const std::regex key(
      R"(\b((?:model|data|training|optimizer|learning_rate|exchange|checkpoint)(?:\.[a-z_]+)+)\b)");
  int named = 0;
  for (const fs::path& file : sources({"src"})) {
    for (const std::string& literal : matches(code_of(file), text)) {
      for (const std::string& path : matches(literal, key)) {
        if (is_file(path)) continue;
        CAPTURE(file, literal, path);
        CHECK(is_listed(path));
        ++named;
      }
    }
  }
  CHECK(named > 50);
}
