#include "tools/report/follow_report.h"

#include <atomic>
#include <catch.hpp>
#include <cmath>
#include <csignal>
#include <thread>

#include "config/config.h"
#include "tests/commands/child.h"
#include "tests/support/run_files.h"
#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

using namespace test;

// A run that someone else makes meanwhile, and the page that follows it.
struct Followed {
  TempRun folder;
  std::filesystem::path run = folder.path() / "run";

  void begin() const {
    std::filesystem::create_directories(run);
    folder.write("run/config.json",
                 resolved_json(parse_config(R"({"model": {"type": "resnet", "depth": 8, "classes": 10},
      "data": {"type": "synthetic"}, "training": {"epochs": 2, "batch_per_worker": 8},
      "learning_rate": {"type": "constant", "base": 0.1}, "optimizer": {"type": "sgd"}})",
                                            "test")));
  }
  std::string page() const { return folder.read("report.html"); }
  bool shows(const std::string& text) const {
    return wait_until([&] { return page().find(text) != std::string::npos; });
  }
  void follow(const std::vector<std::filesystem::path>& runs) const {
    follow_report(runs, folder.path() / "report.html", std::chrono::milliseconds(20));
  }
};

}  // namespace

TEST_CASE("a page follows runs that begin late, go on and are cut mid-line, and stands still once all have finished") {
  const Followed followed;
  std::thread follower([&] { followed.follow({followed.run}); });
  followed.begin();
  {
    MetricsWriter writer(followed.run, {0});
    for (int64_t step = 1; step <= 8; ++step) writer.write(example_step(step));
  }
  CHECK(followed.shows("unfinished: epoch 0.8 of 2"));
  CHECK(followed.shows("data-reload=\"1\""));
  CHECK(followed.shows("<noscript><meta http-equiv=\"refresh\" content=\"1\">"));
  followed.folder.append("run/metrics.jsonl", "{\"kind\":\"step\",\"st");  // half of a row
  {
    MetricsWriter writer(followed.run, {6});  // resumed from step 6
    for (int64_t step = 7; step <= 12; ++step) writer.write(example_step(step));
    CHECK(followed.shows("unfinished: epoch 1.2 of 2"));
    writer.write(FinalMetrics{.eval = example_eval(12), .samples_per_s = 1, .wall_seconds = 1, .weights_xxh64 = "0f"});
  }
  follower.join();
  CHECK(followed.page().find("unfinished") == std::string::npos);
  CHECK(followed.page().find("data-reload") == std::string::npos);
  CHECK(followed.page().find("http-equiv=\"refresh\"") == std::string::npos);
}

TEST_CASE("a run that has diverged has ended, and nobody follows it any longer") {
  const Followed followed;
  followed.begin();
  {
    MetricsWriter writer(followed.run, {0});
    writer.write(example_step(1));
    EvalMetrics eval = example_eval(1);
    for (auto& [metric, value] : eval.measures.all()) value = NAN;
    writer.write(FinalMetrics{.eval = eval, .samples_per_s = 1, .wall_seconds = 1, .weights_xxh64 = "0f"});
  }
  followed.follow({followed.run});
  CHECK(followed.page().find("<em>diverged</em>") != std::string::npos);
  CHECK(followed.page().find("data-reload") == std::string::npos);
}

TEST_CASE("a run that has not begun is waited for, though the others have finished") {
  const Followed followed;
  followed.begin();
  MetricsWriter(followed.run, {0})
      .write(FinalMetrics{.eval = example_eval(20), .samples_per_s = 1, .wall_seconds = 1, .weights_xxh64 = "0f"});
  const std::filesystem::path late = followed.folder.path() / "late";
  std::atomic<bool> ended = false;
  std::thread follower([&] {
    followed.follow({followed.run, late});
    ended = true;
  });
  CHECK(followed.shows("data-reload"));
  CHECK_FALSE(ended);
  // Its metrics are complete before it has a config, as where a copy of a run is looked at half way.
  std::filesystem::create_directory(late);
  std::filesystem::copy(followed.run / "metrics.jsonl", late);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_FALSE(ended);
  std::filesystem::copy(followed.run / "config.json", late);
  follower.join();
  CHECK(followed.page().find("data-reload") == std::string::npos);
}

TEST_CASE("of the runs that a page follows only those that have gone on are read again") {
  const Followed followed;
  followed.begin();
  MetricsWriter(followed.run, {0})
      .write(FinalMetrics{.eval = example_eval(20), .samples_per_s = 1, .wall_seconds = 1, .weights_xxh64 = "0f"});
  const std::filesystem::path late = followed.folder.path() / "late", metrics = followed.run / "metrics.jsonl";
  const std::filesystem::path saved = followed.folder.path() / "saved";
  std::filesystem::copy(followed.run, saved);
  std::thread follower([&] { followed.follow({followed.run, late}); });
  CHECK(followed.shows("data-reload"));
  // The same size and time, and nothing that could be read.
  const auto spoilt = followed.folder.path() / "spoilt";
  followed.folder.write("spoilt", std::string(std::filesystem::file_size(metrics), '\n'));
  std::filesystem::last_write_time(spoilt, std::filesystem::last_write_time(metrics));
  std::filesystem::rename(spoilt, metrics);
  std::filesystem::rename(saved, late);
  follower.join();
  CHECK(followed.page().find("data-reload") == std::string::npos);
}

TEST_CASE("a signal ends following, with a page that stands still") {
  const Followed followed;
  followed.begin();
  MetricsWriter writer(followed.run, {0});
  writer.write(example_step(1));
  bool stopped = false;
  std::thread follower([&] {
    try {
      followed.follow({followed.run, followed.folder.path() / "never"});
    } catch (const Interrupted&) {
      stopped = true;
    }
  });
  CHECK(followed.shows("data-reload"));
  std::raise(SIGINT);
  follower.join();
  CHECK(stopped);
  CHECK(followed.page().find("data-reload") == std::string::npos);
}

}  // namespace dgc
