#include "run/metrics.h"

#include <catch.hpp>
#include <cmath>
#include <fstream>
#include <string>

#include "run/log.h"
#include "tensor/errors.h"
#include "tests/support/json_lines.h"
#include "tests/support/large_allocations.h"
#include "tests/support/run_files.h"

namespace dgc {
namespace {

using test::example_eval;
using test::example_step;
using test::TempRun;

// Steps 1 ... count, with an evaluation after every tenth.
void write_steps(const TempRun& run, int64_t count) {
  MetricsWriter writer(run.path(), {0});
  for (int64_t step = 1; step <= count; ++step) {
    writer.write(example_step(step));
    if (step % 10 == 0) writer.write(example_eval(step));
  }
}

std::vector<Row> rows(const TempRun& run) { return read_json_lines((run.path() / "metrics.jsonl").string()); }

}  // namespace

TEST_CASE("metrics rows have the documented keys in order") {
  CHECK(
      to_json_line(to_row(example_step(4))) ==
      R"({"kind":"step","step":4,"epoch":0.4,"loss":0.5,"lr":0.1,"sparsity":0.75,"transport":"sparse",)"
      R"("sent_bytes":2000,"dense_bytes":8000,"ratio":4.0,"samples_per_s":100.0,"seconds":0.25,"grad_norm":0.5,"skipped":false})");
  CHECK(to_json_line(to_row(example_eval(20))) ==
        R"({"kind":"eval","step":20,"epoch":2.0,"test_loss":1.5,"test_accuracy":0.5,"test_top5":0.9})");
}

TEST_CASE("a metric that has no place among all is refused") {
  static constexpr Metric kForgotten = {"bleu", "BLEU", "test/bleu", Metric::Unit::share};
  Measures measures;
  CHECK_THROWS_AS(measures.set(kForgotten, 0.5), InternalError);
}

TEST_CASE("metrics come back as they were, and NaN as NaN") {
  auto step = example_step(7);
  step.loss = kNoNumber;
  step.skipped = true;
  TempRun run;
  MetricsWriter(run.path(), {0}).write(step);
  CHECK(run.read("metrics.jsonl").find("\"loss\":null") != std::string::npos);
  const auto back = step_from_row(rows(run).at(0), "here");
  CHECK(std::isnan(back.loss));
  CHECK(back.epoch == step.epoch);
  CHECK(back.transport == "sparse");
  CHECK(back.sent_bytes == step.sent_bytes);
  CHECK(back.skipped);
}

TEST_CASE("each row is in the file before the writer is gone") {
  TempRun run;
  MetricsWriter writer(run.path(), {0});
  writer.write(example_step(1));
  CHECK(rows(run).size() == 1);
  writer.write(example_step(2));
  CHECK(rows(run).size() == 2);
}

TEST_CASE("resuming at a step gives the file of a run that never stopped") {
  TempRun whole;
  write_steps(whole, 30);
  const auto stop = GENERATE(int64_t{1}, int64_t{9}, int64_t{10}, int64_t{11}, int64_t{29});
  const auto torn =
      GENERATE(std::string(), std::string("{\"kind\":\"st"), std::string("{\"kind\":\"step\",\"step\":31"),
               std::string("{\"kind\":\"caf\xc3"), std::string(4096, '\0'), std::string(100, '\0').append("\n"),
               std::string("{\"kind\":\"step\"}\0\0", 17), std::string("{\"kind\":\"st\0\0}\n", 15));
  CAPTURE(stop, torn);
  TempRun run;
  write_steps(run, 30);
  run.append("metrics.jsonl", torn);
  {
    MetricsWriter writer(run.path(), {stop});
    for (int64_t step = stop + 1; step <= 30; ++step) {
      writer.write(example_step(step));
      if (step % 10 == 0) writer.write(example_eval(step));
    }
  }
  CHECK(run.read("metrics.jsonl") == whole.read("metrics.jsonl"));
}

TEST_CASE("an attempt that ends before its first row leaves the rows of earlier ones alone") {
  TempRun run;
  write_steps(run, 5);
  MetricsWriter(run.path(), {5}).write(FinalMetrics{.eval = {.step = 5}, .weights_xxh64 = "00ff"});
  const std::string whole = run.read("metrics.jsonl");
  const int64_t step = GENERATE(0, 3, 5);
  { const MetricsWriter writer(run.path(), {step}); }
  CHECK(run.read("metrics.jsonl") == whole);
}

TEST_CASE("the row of an evaluation that is made again is cut off, and so stands there once") {
  TempRun run;
  write_steps(run, 10);  // with the evaluation behind step 10
  const std::string whole = run.read("metrics.jsonl");
  MetricsWriter(run.path(), {.step = 10, .owes_evaluation = true}).write(example_eval(10));
  CHECK(run.read("metrics.jsonl") == whole);
  MetricsWriter(run.path(), {.step = 10}).write(example_step(11));
  CHECK(run.read("metrics.jsonl") == whole + to_json_line(to_row(example_step(11))) + "\n");
}

TEST_CASE("a torn last row is cut off also where its step lies before the checkpoint's") {
  const auto torn = GENERATE(std::string("{\"kind\":\"step\",\"step\":4"), std::string(200, '\0'),
                             std::string("{\"kind\":\"step\",\"step\":4,\"transport\":\"\xe2\x82"));
  TempRun run;
  write_steps(run, 3);
  const std::string whole = run.read("metrics.jsonl");
  run.append("metrics.jsonl", torn);
  MetricsWriter(run.path(), {6}).write(example_step(7));
  CHECK(run.read("metrics.jsonl") == whole + to_json_line(to_row(example_step(7))) + "\n");
}

TEST_CASE("damage behind the rows of the checkpoint is cut off, and damage among them is refused") {
  TempRun run;
  write_steps(run, 6);
  const std::string whole = run.read("metrics.jsonl");
  run.append("metrics.jsonl", to_json_line(to_row(example_step(7))) + "\n" + std::string(30, '\0') + "\n" +
                                  to_json_line(to_row(example_step(9))) + "\n");
  CHECK_THROWS_WITH(MetricsWriter(run.path(), {9}), Catch::Contains("line 8"));
  MetricsWriter(run.path(), {6}).write(example_step(7));
  CHECK(run.read("metrics.jsonl") == whole + to_json_line(to_row(example_step(7))) + "\n");
  run.append("metrics.jsonl", std::string(30, '\0') + "\n" + to_json_line(to_row(example_step(9))) + "\n");
  MetricsWriter(run.path(), {7}).write(example_step(8));
  CHECK(run.read("metrics.jsonl") ==
        whole + to_json_line(to_row(example_step(7))) + "\n" + to_json_line(to_row(example_step(8))) + "\n");
}

TEST_CASE("resuming a long run takes no more memory than resuming a short one") {
  if (!kCountsAllocations) {
    WARN("skipped: a sanitizer has its own malloc, so allocations are not counted");
    return;
  }
  const auto allocations = [](int64_t steps) {
    TempRun run;
    write_steps(run, steps);
    const int before = large_allocations;
    CHECK_FALSE(end_of(run.path()));
    MetricsWriter(run.path(), {steps}).write(example_step(steps + 1));
    return large_allocations - before;
  };
  CHECK(allocations(8000) == allocations(1000));
}

TEST_CASE("what a run has done is told by its metrics") {
  TempRun run;
  CHECK_FALSE(has_steps(run.path()));
  run.write("metrics.jsonl", "{\"kind\":\"st");
  CHECK_FALSE(has_steps(run.path()));
  write_steps(run, 3);
  CHECK(has_steps(run.path()));
  CHECK_FALSE(end_of(run.path()));
  MetricsWriter(run.path(), {3}).write(FinalMetrics{.eval = {.step = 3, .epoch = 1.5}, .weights_xxh64 = "00ff"});
  CHECK(end_of(run.path())->step == 3);
  CHECK(end_of(run.path())->epoch == 1.5);
  write_steps(run, 1000);  // much more than what is read at once
  CHECK_FALSE(end_of(run.path()));
  MetricsWriter(run.path(), {1000}).write(FinalMetrics{.eval = {.step = 1000}, .weights_xxh64 = "00ff"});
  CHECK(end_of(run.path())->step == 1000);
  run.write("metrics.jsonl", "damaged\n{\"kind\":\"step\"}\n");
  CHECK(has_steps(run.path()));  // so that nobody takes its place unasked
  std::filesystem::remove(run.path() / "metrics.jsonl");
  MetricsWriter(run.path(), {3}).write(FinalMetrics{.eval = {.step = 3}, .weights_xxh64 = "00ff"});
  CHECK(has_steps(run.path()));  // the rows of its steps were lost
}

TEST_CASE("a run that says it has diverged has not ended well, though its test loss is a number") {
  TempRun run;
  const auto ends_well = [&](double loss, bool diverged) {
    MetricsWriter(run.path(), {0})
        .write(FinalMetrics{.eval = {.step = 3, .measures = {{&kTestLoss, loss}}}, .diverged = diverged});
    return end_of(run.path())->sound;
  };
  CHECK(ends_well(0.5, false));
  CHECK_FALSE(ends_well(0.5, true));
  CHECK_FALSE(ends_well(kNoNumber, false));
}

TEST_CASE("a whole last row without its newline is kept, and the next one starts a new line") {
  TempRun run;
  write_steps(run, 3);
  auto text = run.read("metrics.jsonl");
  run.write("metrics.jsonl", text.substr(0, text.size() - 1));
  MetricsWriter(run.path(), {3}).write(example_step(4));
  CHECK(run.read("metrics.jsonl") == text + to_json_line(to_row(example_step(4))) + "\n");
}

TEST_CASE("a new run starts afresh, and a finished one loses its final row when it goes on") {
  TempRun run;
  write_steps(run, 5);
  MetricsWriter(run.path(), {5}).write(FinalMetrics{.eval = {.step = 5}, .weights_xxh64 = "00ff"});
  CHECK(rows(run).back().text("weights_xxh64") == "00ff");
  MetricsWriter(run.path(), {5}).write(example_step(6));
  CHECK(rows(run).size() == 6);
  MetricsWriter(run.path(), {0}).write(example_step(1));
  CHECK(rows(run).size() == 1);
}

TEST_CASE("the final row averages what was sent, over the run and after warm-up, across a resume") {
  TempRun run;
  write_steps(run, 20);  // ten steps of 2000 bytes, ten of 20
  MetricsWriter writer(run.path(), {15});
  for (int64_t step = 16; step <= 20; ++step) writer.write(example_step(step));
  writer.write(FinalMetrics{.eval = {.step = 20}, .weights_xxh64 = ""});
  const Row final = rows(run).back();
  CHECK(final.number("mean_sent_bytes") == 1010.0);
  CHECK(final.number("mean_ratio") == Approx(8000.0 / 1010.0));
  CHECK(final.number("mean_sent_bytes_after_warmup") == 20.0);
  CHECK(final.number("mean_ratio_after_warmup") == 400.0);
}

TEST_CASE("what is written after somebody has emptied the file follows its beginning") {
  TempRun run;
  MetricsWriter writer(run.path(), {0});
  writer.write(example_step(1));
  run.write("metrics.jsonl", "");
  writer.write(example_step(2));
  CHECK(run.read("metrics.jsonl") == to_json_line(to_row(example_step(2))) + "\n");
}

TEST_CASE("a result that has no file is not written, whatever took the file's place") {
  TempRun run;
  MetricsWriter writer(run.path(), {0});
  writer.write(example_step(1));
  CHECK_NOTHROW(writer.require_written());
  std::filesystem::remove(run.path() / "metrics.jsonl");
  const bool is_link = GENERATE(true, false);
  if (is_link) {
    std::filesystem::create_symlink("elsewhere", run.path() / "metrics.jsonl");
  } else {
    std::filesystem::create_directory(run.path() / "metrics.jsonl");
  }
  {
    const RunLog log(run.path());
    writer.follow_name();
  }
  const std::string lost = "no file can be written there: ";
  CHECK_THAT(run.read("log.txt"), Catch::Contains(lost + (is_link ? "it is a link" : "Is a directory")));
  writer.write(example_step(2));
  CHECK_THROWS_WITH(writer.require_written(), Catch::Contains("its result could not be written to") &&
                                                  Catch::Contains("metrics.jsonl: remove what another program"));
  std::filesystem::remove(run.path() / "metrics.jsonl");
  writer.follow_name();
  CHECK_NOTHROW(writer.require_written());
  CHECK_FALSE(std::filesystem::exists(run.path() / "elsewhere"));
}

TEST_CASE("damage behind a checkpoint between two exchanges is cut off") {
  const TempRun run;
  const bool has_exchanged = GENERATE(true, false);
  if (has_exchanged) {
    MetricsWriter writer(run.path(), {0});
    StepMetrics round = example_step(27);
    round.local_steps = 27;
    writer.write(round);
  }
  std::ofstream(run.path() / "metrics.jsonl", std::ios::app) << std::string(30, '\0') << "\n";
  MetricsWriter(run.path(), {30, has_exchanged ? 3 : 30}).write(example_step(31));
  CHECK(run.read("metrics.jsonl").find('\0') == std::string::npos);
  CHECK(read_json_lines((run.path() / "metrics.jsonl").string()).size() == (has_exchanged ? 2 : 1));
}

TEST_CASE("rows that somebody has cut out are missed when the run goes on") {
  const auto warning = [](int64_t unexchanged, const std::vector<std::pair<int64_t, int64_t>>& rows) {
    const TempRun run;
    {
      MetricsWriter writer(run.path(), {0});
      writer.write(example_eval(0));
      for (const auto& [step, local_steps] : rows) {
        StepMetrics metrics = example_step(step);
        metrics.local_steps = local_steps;
        writer.write(metrics);
      }
      writer.write(example_step(31));  // behind the checkpoint
    }
    {
      const RunLog log(run.path());
      const MetricsWriter again(run.path(), {30, unexchanged});
    }
    const std::string text = run.read("log.txt"), begin = "metrics.jsonl: there is no row for ";
    const size_t at = text.find(begin);
    return at == std::string::npos ? text : text.substr(at + begin.size(), text.find(';', at) - at - begin.size());
  };
  CHECK(warning(0, {{10, 10}, {20, 10}, {30, 10}}).empty());
  CHECK(warning(0, {{27, 27}, {28, 1}, {30, 2}}).empty());
  CHECK(warning(3, {{27, 27}}).empty());
  CHECK(warning(2, {{27, 27}}) == "1 of the 30 steps so far, of which the first is 28");
  CHECK(warning(0, {}) == "30 of the 30 steps so far, of which the first is 1");
  CHECK(warning(0, {{20, 20}}) == "10 of the 30 steps so far, of which the first is 21");
  CHECK(warning(0, {{20, 10}, {29, 5}, {30, 1}}) == "14 of the 30 steps so far, of which the first is 1");
  CHECK(warning(0, {{20, 20}, {29, 5}, {30, 1}}) == "4 of the 30 steps so far, of which the first is 21");
}

TEST_CASE("a file that is no metrics file is named") {
  TempRun run;
  run.write("metrics.jsonl", "{\"kind\":\"step\",\"epoch\":1}\n");
  CHECK_THROWS_WITH(MetricsWriter(run.path(), {1}), Catch::Contains("metrics.jsonl: line 1: \"step\""));
  CHECK_THROWS_AS(MetricsWriter(run.path() / "nowhere", {0}), UserError);
}

}  // namespace dgc
