#include <catch.hpp>

#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;

}  // namespace

TEST_CASE("what is installed trains a shipped config, and has its man page and completion") {
  const TempRun folder;
  const std::filesystem::path there = folder.path() / "usr", build = std::filesystem::path(DGC_BINARY).parent_path();
  Child install(folder.path(), {"--install", build.string(), "--prefix", there.string()}, "cmake");
  const int code = install.wait();
  INFO(install.err());
  REQUIRE(code == 0);
  for (const char* file :
       {"share/man/man1/dgc.1.gz", "share/bash-completion/completions/dgc", "share/zsh/vendor-completions/_dgc",
        "share/dgc/configs/quickstart.json", "share/dgc/data/fashion_mnist", "share/doc/dgc/README.md"}) {
    CAPTURE(file);
    CHECK(std::filesystem::file_size(there / file) > 0);
  }
  // Data sets that lie in data/ stay where they are.
  for (const auto& entry : std::filesystem::directory_iterator(there / "share/dgc/data")) CHECK(!entry.is_directory());

  Child train(folder.path(),
              {"train", (there / "share/dgc/configs/examples/synthetic.json").string(), "--set", "training.max_steps=2",
               "--out", "run"},
              (there / "bin/dgc").string());
  const int trained = train.wait();
  INFO(train.err());
  CHECK(trained == 0);
  CHECK(std::filesystem::exists(folder.path() / "run/metrics.jsonl"));
}

}  // namespace dgc
