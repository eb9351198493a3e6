#include "run/version.h"

#include <catch.hpp>
#include <regex>

#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;

// A folder with source in it, and the header that a build makes there of its version.
class Source {
 public:
  Source() { folder_.write("file", "1"); }

  void git(std::vector<std::string> arguments) const {
    const std::vector<std::string> own = {"GIT_CONFIG_GLOBAL=/dev/null",
                                          "GIT_CONFIG_SYSTEM=/dev/null",
                                          "git",
                                          "-c",
                                          "user.name=A",
                                          "-c",
                                          "user.email=a@b.c"};
    arguments.insert(arguments.begin(), own.begin(), own.end());
    Child child(outside_.path(), with_folder(std::move(arguments), own.size()), "env");
    const int code = child.wait();
    INFO(child.err());
    REQUIRE(code == 0);
  }
  void commit() const {
    git({"add", "file"});
    git({"commit", "--quiet", "--message", "x"});
  }
  void write(const std::string& text) const { folder_.write("file", text); }
  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path header() const { return outside_.path() / "version.h"; }

  // As a build does.
  std::string version(const std::filesystem::path& source) const {
    const std::string script = DGC_SOURCE_DIR "/cmake/version.cmake";
    Child cmake(
        outside_.path(),
        {"-DSOURCE=" + source.string(), "-DPROJECT_VERSION=0.7.0", "-DHEADER=" + header().string(), "-P", script},
        "cmake");
    const int code = cmake.wait();
    CHECK(cmake.err().empty());
    REQUIRE(code == 0);
    std::smatch match;
    const std::string text = text_of(header());
    REQUIRE(std::regex_search(text, match, std::regex("#define DGC_VERSION \"(.*)\"")));
    return match[1];
  }
  std::string version() const { return version(path()); }

 private:
  std::vector<std::string> with_folder(std::vector<std::string> arguments, size_t at) const {
    const std::vector<std::string> folder = {"-C", path().string()};
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(at), folder.begin(), folder.end());
    return arguments;
  }

  TempRun folder_, outside_;
};

bool matches(const std::string& text, const std::string& pattern) {
  return std::regex_match(text, std::regex(pattern));
}

}  // namespace

TEST_CASE("the version is that of the tag, and of what came since") {
  const Source source;
  CHECK(source.version() == "0.7.0");  // a tarball
  source.git({"init", "--quiet"});
  CHECK(source.version() == "0.7.0+unknown");  // nothing is committed
  source.commit();
  CHECK(matches(source.version(), R"(0\.7\.0\+g[0-9a-f]+)"));
  source.git({"tag", "other"});
  source.git({"tag", "v0.8.0"});
  CHECK(source.version() == "0.8.0");
  const auto written = std::filesystem::last_write_time(source.header());
  CHECK(source.version() == "0.8.0");
  CHECK(std::filesystem::last_write_time(source.header()) == written);  // so that nothing is compiled again
  source.write("2");
  CHECK(matches(source.version(), R"(0\.8\.0\+0\.g[0-9a-f]+\.dirty)"));
  source.commit();
  CHECK(matches(source.version(), R"(0\.8\.0\+1\.g[0-9a-f]+)"));
}

TEST_CASE("a tarball inside of another repository has the version of its own") {
  const Source source;
  source.git({"init", "--quiet"});
  source.commit();
  source.git({"tag", "v3.0.0"});
  std::filesystem::create_directory(source.path() / "tarball");
  CHECK(source.version(source.path() / "tarball") == "0.7.0");
}

TEST_CASE("dgc --version is one line, and info has the same version") {
  const Program dgc;
  const Result version = dgc.run({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out == "dgc " + program_version() + "\n");
  CHECK(version.err.empty());
  CHECK(matches(program_version(), R"(\d+\.\d+\.\d+(\+[0-9a-z.]+)?)"));
  CHECK_THAT(dgc.run({"info"}).out, Catch::Contains(" " + program_version() + "\n"));
}

}  // namespace dgc
