#include <fmt/core.h>

#include <catch2/catch.hpp>

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

TEST_CASE("SIGINT and SIGTERM save first, exit code 130, and the resumed run ends in the same bits") {
  constexpr int kEpochs = 100;  // 600 steps: long enough to be hit
  const std::string saving = "checkpoint.every_epochs=0";
  const Program dgc;
  {
    Child whole(dgc.folder(), train("whole", kEpochs, saving, false));
    REQUIRE(whole.wait() == 0);
  }
  size_t rows = 0;
  bool resume = false;
  for (const int signal : {SIGINT, SIGTERM}) {
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
  const Philox rng(static_cast<uint64_t>(begin.time_since_epoch().count()), 0);
  int killed = 0;
  for (uint64_t kill = 0; kill < 5; ++kill) {
    Child child(dgc.folder(), train("killed", kEpochs, saving, std::filesystem::exists(dgc.folder() / "killed")));
    std::this_thread::sleep_for(duration * 0.4 * static_cast<double>(rng.uniform(kill)));
    child.send(SIGKILL);
    if (child.wait() == 128 + SIGKILL) ++killed;
  }
  CAPTURE(killed);
  Child last(dgc.folder(), train("killed", kEpochs, saving, true));
  const int code = last.wait();
  INFO(last.err());
  REQUIRE(code == 0);
  CHECK(dgc.final_hash("killed") == dgc.final_hash("whole"));
}

}  // namespace dgc
