#include <fmt/core.h>

#include <catch.hpp>
#include <fstream>
#include <utility>

#include "tensor/rng.h"
#include "tests/commands/program.h"

// Runs that are stopped from outside, and go on.
namespace dgc {
namespace {

using namespace test;

std::vector<std::string> train(const std::string& run, int epochs, const std::string& saving, bool resume) {
  std::vector<std::string> words = {"train", "tiny.json",
                                    "--out", run,
                                    "--set", fmt::format("training.epochs={}", epochs),
                                    "--set", saving,
                                    "--set", "training.eval_every_epochs=0"};
  if (resume) words.push_back("--resume");
  return words;
}

}  // namespace

TEST_CASE("SIGINT, SIGTERM and SIGHUP save first, exit code 130, and the resumed run ends in the same bits") {
  constexpr int kEpochs = 150;  // 900 steps: long enough to be hit
  const std::string saving = "checkpoint.every_epochs=0";
  const Program dgc;
  {
    Child whole(dgc.folder(), train("whole", kEpochs, saving, false));
    REQUIRE(whole.wait() == 0);
  }
  size_t rows = 0;
  bool resume = false;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Child child(dgc.folder(), train("stopped", kEpochs, saving, resume));
    REQUIRE(wait_until([&] { return dgc.rows("stopped").size() > rows + 3; }));
    child.send(signal);
    CHECK(child.wait() == 130);
    CHECK_THAT(child.err(), Catch::Contains("the state is saved, go on with --resume"));
    const size_t steps = dgc.rows("stopped").size();
    CHECK(steps > rows);
    REQUIRE(steps < 6 * kEpochs);
    CHECK(dgc.checkpoints("stopped").at(0) == fmt::format("step-{:09}", steps));
    rows = steps;
    resume = true;
  }
  Child last(dgc.folder(), train("stopped", kEpochs, saving, true));
  REQUIRE(last.wait() == 0);
  CHECK(dgc.final_hash("stopped") == dgc.final_hash("whole"));
}

// The kernel spares the first process of a container the default action of signals.
TEST_CASE("the first process of a container ends by a signal, also where nothing is to be saved") {
  const Program dgc;
  if (std::system("unshare --pid --fork true 2> /dev/null") != 0) {
    WARN("skipped: this user may make no container");
    return;
  }
  Child container(dgc.folder(), {"--pid", "--fork", "--kill-child", DGC_BINARY, "bench", "dgc", "--steps", "100000"},
                  "unshare");
  // It hears no signal before it has asked for that, so they go on until there is nobody any more.
  bool seen = false;
  REQUIRE(wait_until([&] {
    pid_t inside = 0;
    std::ifstream(fmt::format("/proc/{0}/task/{0}/children", container.pid())) >> inside;
    if (inside != 0) kill(inside, SIGTERM);
    return std::exchange(seen, inside != 0) && inside == 0;
  }));
  CHECK(container.wait() == 128 + SIGTERM);
}

TEST_CASE("a run under nohup does not hear of a closed terminal") {
  const Program dgc;
  std::vector<std::string> words = train("run", 20, "checkpoint.every_epochs=0", false);
  words.insert(words.begin(), DGC_BINARY);
  Child child(dgc.folder(), words, "nohup");
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  child.send(SIGHUP);
  const int code = child.wait();
  INFO(child.err());
  CHECK(code == 0);
}

TEST_CASE("a run goes on when nobody reads its messages any more") {
  const Program dgc;
  // A shell starts it: $0 is the program, $@ are its arguments.
  const std::string shell = GENERATE(std::string("(\"$0\" \"$@\"; echo $? > code) 2>&1 | true"),
                                     std::string("(\"$0\" \"$@\"; echo $? > code) 2>&1 >table.txt | true"));
  CAPTURE(shell);
  const bool supervised = GENERATE(false, true);
  CAPTURE(supervised);
  std::vector<std::string> words = train("run", 3, "checkpoint.every_steps=2", false);
  if (supervised) words.insert(words.end(), {"--max-restarts", "2"});
  words.insert(words.begin(), {"-c", shell, DGC_BINARY});
  Child child(dgc.folder(), words, "sh");
  child.wait();
  CHECK(dgc.read("code") == "0\n");
  CHECK(dgc.final_hash("run").size() == 16);
  CHECK_THAT(dgc.read("run/log.txt"), Catch::Contains("4 workers x batch 4") && !Catch::Contains("--resume"));
}

TEST_CASE("a command whose product is its output ends quietly when nobody reads that") {
  const Program dgc;
  Child child(dgc.folder(), {"-c", "\"$0\" config tiny.json | true", DGC_BINARY}, "sh");
  CHECK(child.wait() == 0);
  CHECK(child.err().empty());
}

TEST_CASE("a run that is killed at random moments, also while it saves, ends in the same bits") {
  constexpr int kEpochs = 5;
  const std::string saving = "checkpoint.every_steps=1";
  const Program dgc;
  const auto begin = std::chrono::steady_clock::now();
  {
    Child whole(dgc.folder(), train("whole", kEpochs, saving, false));
    REQUIRE(whole.wait() == 0);
  }
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
  const auto seed = static_cast<uint64_t>(begin.time_since_epoch().count());
  const Philox rng(seed, 0);
  int killed = 0;
  for (uint64_t kill = 0; kill < 5; ++kill) {
    Child child(dgc.folder(), train("killed", kEpochs, saving, std::filesystem::exists(dgc.folder() / "killed")));
    std::this_thread::sleep_for(duration * 0.4 * static_cast<double>(rng.uniform(kill)));
    child.send(SIGKILL);
    if (child.wait() == 128 + SIGKILL) ++killed;
  }
  CAPTURE(seed, killed);
  Child last(dgc.folder(), train("killed", kEpochs, saving, true));
  const int code = last.wait();
  INFO(last.err());
  REQUIRE(code == 0);
  CHECK(dgc.final_hash("killed") == dgc.final_hash("whole"));
}

}  // namespace dgc
