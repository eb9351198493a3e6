// The fuzzers compile and agree with what they try, here without clang: each runs once over what it begins with. A
// condition that does not hold ends the program (fuzz::require), and Catch2 names the test.
#include <catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "fuzzers.h"
#include "paths.h"

namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    if (entry.is_regular_file())
      files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

}  // namespace

TEST_CASE("every fuzzer runs over its seeds", "[fuzz]") {
  const auto& fuzzer = GENERATE(from_range(dgc::test::kFuzzers));
  INFO(fuzzer.name);
  std::vector<std::string> inputs = files_in(fs::path(DGC_SOURCE_DIR "/tests/fuzz/seeds") / fuzzer.name);
  std::string counting(1000, '\0');
  std::iota(counting.begin(), counting.end(), '\0');
  inputs.insert(inputs.end(), {"", counting});
  for (const std::string& input : inputs) {
    CHECK(fuzzer.run(reinterpret_cast<const uint8_t*>(input.data()), input.size()) == 0);
  }
}
