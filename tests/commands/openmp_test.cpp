#include <catch.hpp>

#include "paths.h"
#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

const std::vector<std::string> kNobodyDecided = {"-u", "OMP_WAIT_POLICY", "-u", "GOMP_SPINCOUNT"};

// `env SETTINGS dgc WORDS`, whose OpenMP prints its settings every time that the program starts.
std::string openmp_settings(std::vector<std::string> settings, const std::vector<std::string>& words) {
  const TempRun folder;
  settings.insert(settings.end(), {"OMP_DISPLAY_ENV=verbose", DGC_BINARY});
  settings.insert(settings.end(), words.begin(), words.end());
  Child child(folder.path(), settings, "env");
  child.wait();
  return child.err();
}

size_t count(const std::string& text, const std::string& what) {
  size_t times = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

}  // namespace

TEST_CASE("OpenMP's threads spin shortly where a command computes, unless somebody has decided otherwise") {
  const std::vector<std::string> command =
      GENERATE(std::vector<std::string>{"train", "no such.json"}, std::vector<std::string>{"eval", "no such run"},
               std::vector<std::string>{"generate", "no such run"},
               std::vector<std::string>{"transcribe", "no such run", "no.wav"},
               std::vector<std::string>{"predict", "no such run", "no.png"},
               std::vector<std::string>{"bench", "train", "no such.json"});
  CAPTURE(command);
  CHECK_THAT(openmp_settings(kNobodyDecided, command), Contains("GOMP_SPINCOUNT = '1000'"));
  auto somebody = kNobodyDecided;
  somebody.emplace_back("GOMP_SPINCOUNT=77");
  CHECK_THAT(openmp_settings(somebody, command), Contains("GOMP_SPINCOUNT = '77'") && !Contains("'1000'"));
  somebody.back() = "OMP_WAIT_POLICY=active";
  CHECK_THAT(openmp_settings(somebody, command), Contains("OMP_WAIT_POLICY = 'ACTIVE'") && !Contains("'1000'"));
}

TEST_CASE("a command that computes nothing starts once") {
  const std::vector<std::string> command =
      GENERATE(std::vector<std::string>{"--help"}, std::vector<std::string>{"train", "--help"},
               std::vector<std::string>{"info"}, std::vector<std::string>{"config", "no such.json"});
  CAPTURE(command);
  CHECK(count(openmp_settings(kNobodyDecided, command), "GOMP_SPINCOUNT") == 1);
}

TEST_CASE("a training is called dgc where processes are listed") {
  const Program dgc;
  std::vector<std::string> words = kNobodyDecided;
  words.insert(words.end(), {DGC_BINARY, "train", "tiny.json", "--out", "run", "--set", "training.epochs=100000"});
  const Child child(dgc.folder(), words, "env");
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  CHECK(text_of("/proc/" + std::to_string(child.pid()) + "/comm") == "dgc\n");
}

TEST_CASE("a training to which OpenMP would give fewer threads than it has asked for does not start") {
  const Program dgc;
  for (const char* setting : {"OMP_THREAD_LIMIT=1", "OMP_MAX_ACTIVE_LEVELS=0"}) {
    Child child(dgc.folder(), {setting, DGC_BINARY, "train", "tiny.json", "--out", "run", "--set", "threads=2"}, "env");
    CHECK(child.wait() == 2);
    CHECK_THAT(child.err(), Contains("OpenMP starts 1 of 2 threads: unset OMP_THREAD_LIMIT"));
  }
  Child child(dgc.folder(),
              {"OMP_DYNAMIC=true", DGC_BINARY, "train", "tiny.json", "--out", "run", "--set", "threads=2"}, "env");
  INFO(child.err());
  CHECK(child.wait() == 0);
}

}  // namespace dgc
