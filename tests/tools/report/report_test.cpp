#include "tools/report/report.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch.hpp>

#include "config/config.h"
#include "json/text.h"
#include "paths.h"
#include "run/run_directory.h"
#include "tensor/errors.h"
#include "tests/support/run_files.h"
#include "tests/tools/report/made_runs.h"
#include "tests/tools/report/page_script.h"
#include "tools/report/report_data.h"

namespace dgc {
namespace {

using test::between;
using test::drawn_by_script;
using test::example_step;
using test::has;
using test::Made;
using test::make_run;
using test::occurrences;
using test::page_curves;
using test::report;
using test::TempRun;

// Columns are padded; the tests look at the words.
std::string squeeze(const std::string& table) {
  std::string out;
  for (const char c : table) {
    if (c != ' ' || out.empty() || out.back() != ' ') out += c;
  }
  return out;
}

}  // namespace

TEST_CASE("the table sets a compressed run beside a dense one") {
  TempRun dgc, dense;
  make_run(dgc, {.name = "sparse"});
  make_run(dense, {.name = "dense", .optimizer = R"({"type": "sgd"})"});
  const auto table = squeeze(final_table(read_groups({dgc.path(), dense.path()})));
  INFO(table);
  CHECK(has(table, "sparse dense\n"));
  CHECK(has(table, "test accuracy 75.00 % 75.00 %\n"));
  CHECK(has(table, "sent per worker and step * 20 B 7.81 KiB\n"));
  CHECK(has(table, "compression ratio * 400.0x 1.00x\n"));
  CHECK(has(table, "compression ratio, whole run 7.92x 1.00x\n"));  // of 10 steps with 2000 bytes, and 10 with 20
  CHECK(has(table, "images/s 1,234 1,234\n"));
  CHECK(has(table, "wall time 61 s 61 s\n"));
  CHECK(has(table, "skipped steps 1 1\n"));
  CHECK(has(table, "0123456789abcdef"));
}

TEST_CASE("runs that differ in their seeds alone are one experiment, with mean and deviation") {
  TempRun first, second, third, other;
  make_run(first, {.accuracy = 0.70});
  make_run(second, {.seed = 2, .accuracy = 0.74});
  make_run(third, {.steps = 15, .finished = false, .seed = 3, .accuracy = 0.72});
  make_run(other, {.name = "dense", .optimizer = R"({"type": "sgd"})"});
  const auto table = squeeze(final_table(read_groups({first.path(), other.path(), second.path()})));
  INFO(table);
  CHECK(has(table, "run dense\nseeds 1, 2 1\n"));
  CHECK(has(table, "test accuracy 72.00 % ± 2.83 % 75.00 %\n"));
  CHECK(has(table, "weights xxh64 – 0123456789abcdef\n"));  // each seed has others
  CHECK(has(squeeze(final_table(read_groups({first.path(), third.path()}))), "run (1 of 2 finished)\n"));

  const auto page = report({first.path(), second.path(), third.path(), other.path()});
  CHECK(has(page, "<polygon class=\"band r0 d0\""));
  CHECK_FALSE(has(page, "band r1"));
  CHECK_FALSE(has(page, "nan,"));
  CHECK_FALSE(has(page, ",nan"));
}

TEST_CASE("of seeds that are finished and others that are not, the finished ones count, and the page says so") {
  TempRun first, second, third, dense;
  make_run(first, {.accuracy = 0.90});
  make_run(second, {.seed = 2, .accuracy = 0.96});
  make_run(third, {.steps = 11, .finished = false, .seed = 3, .accuracy = 0.20});
  make_run(dense, {.name = "dense", .optimizer = R"({"type": "sgd"})"});
  const std::string note = "where some seeds are finished and others are not";
  const auto groups = read_groups({third.path(), first.path(), second.path(), dense.path()});
  const auto table = squeeze(final_table(groups));
  INFO(table);
  CHECK(has(table, "run (2 of 3 finished) dense\nseeds 1, 2 (unfinished: 3) 1\n"));
  CHECK(has(table, "test accuracy 93.00 % ± 4.24 % 75.00 %\n"));
  CHECK(has(table, "steps 20 20\n"));
  CHECK(has(table, "epochs 1.1 of 2 2 of 2\n"));
  CHECK(has(table, note));
  CHECK_THAT(
      comparisons(groups).at(0),
      Catch::EndsWith(
          "Test accuracy: 93.00 % against 75.00 %, with the same seeds a difference of +15.00 points (1 pair)."));
  const std::string page = report({third.path(), first.path(), second.path()});
  CHECK(has(page, note));
  CHECK(has(page, "Where one seed has ended earlier, the mean goes on with the others."));

  CHECK_FALSE(has(final_table(read_groups({first.path(), second.path()})), note));
  TempRun fourth;
  make_run(fourth, {.steps = 12, .finished = false, .seed = 4, .accuracy = 0.30});
  const auto unfinished = squeeze(final_table(read_groups({third.path(), fourth.path()})));
  CHECK(has(unfinished, "seeds 3, 4\n"));
  CHECK(has(unfinished, "test accuracy 25.00 % ± 7.07 %\n"));
  CHECK_FALSE(has(unfinished, note));
}

TEST_CASE("seeds that have diverged are told and in no mean, whether the loss or the outcome is no number") {
  TempRun first, second, third, alone;
  make_run(first, {.accuracy = 0.90});
  make_run(second, {.seed = 2, .accuracy = 0.20, .final_loss = kNoNumber});
  make_run(third, {.seed = 3, .accuracy = kNoNumber});
  make_run(alone, {.name = "alone", .final_loss = kNoNumber});
  const auto groups = read_groups({first.path(), second.path(), third.path(), alone.path()});
  const auto table = squeeze(final_table(groups));
  INFO(table);
  CHECK(has(table, "run (1 of 3 finished, 2 diverged) alone (diverged)\nseeds 1 (diverged: 2, 3) 1\n"));
  CHECK(has(table, "test accuracy 90.00 % 75.00 %\n"));
  CHECK(has(table, "or have diverged, all numbers are those of the finished ones"));
  CHECK(has(report({alone.path()}), "alone <em>diverged</em>"));
  CHECK(has(report({first.path(), second.path(), third.path()}), "run <em>2 of 3 diverged</em>"));
}

TEST_CASE("a group of several seeds has no seed among its keys") {
  std::vector<TempRun> runs(3);
  for (uint64_t i = 0; i < 2; ++i) make_run(runs[i], {.seed = i + 1});
  make_run(runs[2], {.optimizer = R"({"type": "sgd"})", .seed = 3});
  const auto has_seed = [](const std::vector<RunGroup>& groups) {
    return std::ranges::count(config_table(groups), "seed", &TableRow::what) > 0;
  };
  CHECK(has_seed(read_groups({runs[0].path(), runs[2].path()})));
  CHECK_FALSE(has_seed(read_groups({runs[0].path(), runs[1].path(), runs[2].path()})));
}

TEST_CASE("what keys differ in is shown for each run, and escaped on the page") {
  TempRun plain, hot, bold;
  make_run(plain, {.name = "plain", .data = R"({"type": "cifar10", "path": "plain"})"});
  make_run(hot, {.name = "hot",
                 .optimizer = R"({"type": "dgc", "sparsity": 0.9, "warmup": {"epochs": 1}})",
                 .data = R"({"type": "cifar10", "path": "plain"})"});
  make_run(bold, {.name = "bold", .data = R"({"type": "cifar10", "path": "<b>bold"})"});
  const auto cells = [table = config_table(read_groups({plain.path(), hot.path(), bold.path()}))](const char* key) {
    return std::ranges::find(table, key, &TableRow::what)->cells;
  };
  CHECK(cells("optimizer.sparsity") == std::vector<std::string>{"0.999", "0.9", "0.999"});
  CHECK(cells("data.path") == std::vector<std::string>{R"("plain")", R"("plain")", R"("<b>bold")"});
  const std::string page = report({plain.path(), bold.path()});
  CHECK(has(page, "&lt;b&gt;bold"));
  CHECK_FALSE(has(page, "<b>bold"));
}

TEST_CASE("a mean says of how many seeds it is where some have no such number") {
  RunGroup group{"run", std::vector<RunData>(3)};
  double next = 0;
  const auto text = [&](double first) {
    next = first;
    return group.text([&](const RunData&) { return std::exchange(next, next + 1); },
                      [](double value) { return fmt::format("{:.1f}", value); });
  };
  CHECK(text(1) == "2.0 ± 1.0");
  next = 0;
  const auto some = [&](const RunData&) { return ++next == 2 ? kNoNumber : next; };
  CHECK(group.text(some, [](double value) { return fmt::format("{:.1f}", value); }) == "2.0 ± 1.4 (2 of 3)");
}

TEST_CASE("a run that is given twice is not one experiment") {
  TempRun run;
  make_run(run, {});
  CHECK(has(squeeze(final_table(read_groups({run.path(), run.path()}))),
            run.path().string() + " " + run.path().string() + "\n"));
}

TEST_CASE("the table says what overlap hid, where a run overlapped") {
  TempRun with, without;
  make_run(with, {.name = "with", .exchange_ms = 12.345, .hidden_share = 0.875});
  make_run(without, {.name = "without"});
  const auto table = squeeze(final_table(read_groups({with.path(), without.path()})));
  INFO(table);
  CHECK(has(table, "compression and exchange 12.3 ms a step –\n"));
  CHECK(has(table, "of it behind the backward pass 87.50 % –\n"));
  CHECK_FALSE(has(final_table(read_groups({without.path()})), "backward pass"));
}

TEST_CASE("the report is one page on its own, with curves, table and differences") {
  TempRun dgc, dense;
  make_run(dgc, {.name = "sparse", .accuracy = 0.77});
  make_run(dense, {.name = "dense", .optimizer = R"({"type": "sgd"})"});
  const auto page = report({dgc.path(), dense.path()});
  for (const char* title : {"Training loss", "Test accuracy", "Sent by each worker", "Gradient sparsity"}) {
    CHECK(has(page, title));
  }
  CHECK(has(page, "sparse sends 400 times fewer bytes than dense: 20 B against 7.81 KiB"));
  CHECK(has(page, "77.00 % against 75.00 %, with the same seeds a difference of +2.00 points."));
  CHECK(has(page, "optimizer.type"));
  CHECK(has(page, "0123456789abcdef"));
  std::string without_namespace = page;  // SVG's name is an address, and nobody visits it
  const std::string name = "'http://www.w3.org/2000/svg'";
  REQUIRE(occurrences(page, name) == 1);
  without_namespace.erase(page.find(name), name.size());
  for (const char* outside : {"http:", "https:", "src=", "url(", "@import"})
    CHECK_FALSE(has(without_namespace, outside));
  CHECK_FALSE(has(page, "nan,"));
  CHECK_FALSE(has(page, ",nan"));
}

TEST_CASE("runs of different models are shown together and not compared") {
  const std::string language = R"({"type": "lstm_lm", "hidden": 6, "vocabulary": 9})";
  const std::string text = R"({"type": "text", "train": "a", "valid": "b", "test": "c"})";
  const std::string deeper = R"({"type": "resnet", "depth": 14, "classes": 10})", sgd = R"({"type": "sgd"})";
  TempRun image, deep, lm, dense_lm;
  make_run(image, {.name = "image"});
  make_run(deep, {.name = "deep", .optimizer = sgd, .model = deeper});
  make_run(lm, {.name = "lm", .model = language, .data = text});
  make_run(dense_lm, {.name = "dense_lm", .optimizer = sgd, .model = language, .data = text});
  const auto page = report({image.path(), deep.path(), lm.path(), dense_lm.path()});
  CHECK(has(page, "lm sends 400 times fewer bytes than dense_lm"));
  CHECK_FALSE(has(page, "image sends"));
  const auto figure = [&](const std::string& title) {
    const size_t at = page.find("<figcaption>" + title);
    return page.substr(at, page.find("</figure>", at) - at);
  };
  for (const char* look : {"r0", "r1", "r2", "r3"}) {
    CHECK(has(figure("Training loss"), std::string("<path class=\"line ") + look + " d0\" d=\"M"));
  }
  for (const char* look : {"r0", "r1"}) {
    CHECK(has(figure("Test accuracy"), std::string("<path class=\"line ") + look + " d0\" d=\"M"));
  }
  for (const char* look : {"r2", "r3"}) CHECK_FALSE(has(figure("Test accuracy"), std::string("line ") + look));
}

TEST_CASE("a language model has curves of its losses, and none of the shares that people do not compare it by") {
  TempRun lm, image;
  make_run(lm, {.model = R"({"type": "lstm_lm", "hidden": 6, "vocabulary": 9})",
                .data = R"({"type": "text", "train": "a", "valid": "b", "test": "c"})"});
  make_run(image, {.name = "image"});
  const Json alone = page_curves(report({lm.path()})), both = page_curves(report({lm.path(), image.path()}));
  const auto runs_in = [](const Json& all, const std::string& key) {
    std::vector<size_t> runs;
    for (const Json& plot : all.at("plots")) {
      if (plot.at("key") != key) continue;
      for (const Json& curve : plot.at("curves")) runs.push_back(curve.at("run"));
    }
    return runs;
  };
  CHECK(runs_in(alone, "test_loss") == std::vector<size_t>{0});
  CHECK(runs_in(both, "test_loss") == std::vector<size_t>{0, 1});
  for (const char* share : {"test_accuracy", "test_top5"}) {
    CHECK(runs_in(alone, share).empty());
    CHECK(runs_in(both, share) == std::vector<size_t>{1});
  }
}

TEST_CASE("kinds of data have a column each, and no difference between them") {
  TempRun image, lm;
  make_run(image, {.name = "image"});
  make_run(lm, {.name = "lm",
                .model = R"({"type": "lstm_lm", "hidden": 6, "vocabulary": 9})",
                .data = R"({"type": "text", "train": "a", "valid": "b", "test": "c"})"});
  auto groups = read_groups({image.path(), lm.path()});
  groups.at(1).runs.at(0).final->eval.measures.set(kTestPerplexity, 90);
  const auto table = squeeze(final_table(groups));
  INFO(table);
  CHECK(has(table, "test perplexity – 90.00\n"));
  CHECK(has(table, "test accuracy 75.00 % –\n"));  // people do not compare language models by it
  CHECK(has(table, "samples/s 1,234 1,234\n"));
  CHECK(difference_text(groups[0], groups[1]).empty());
  CHECK(difference_text(groups[1], groups[0]).empty());
}

TEST_CASE("a difference of perplexities is no percentage") {
  const auto run = [](const TempRun& folder, const std::string& optimizer, double perplexity) {
    make_run(folder, {.optimizer = optimizer,
                      .model = R"({"type": "lstm_lm", "hidden": 6, "vocabulary": 9})",
                      .data = R"({"type": "text", "train": "a", "valid": "b", "test": "c"})"});
    RunData data = read_run(folder.path());
    data.final->eval.measures.set(kTestPerplexity, perplexity);
    return data;
  };
  TempRun sparse, dense;
  const auto groups = group_runs({run(sparse, R"({"type": "dgc"})", 82.25), run(dense, R"({"type": "sgd"})", 81)});
  CHECK(difference_text(groups.at(0), groups.at(1)) == "+1.25");
}

TEST_CASE("only results are compared seed by seed, and the pairs are told where they are not all seeds") {
  const std::string sgd = R"({"type": "sgd"})";
  std::vector<TempRun> sparse(3), dense(3);
  for (uint64_t i = 0; i < 3; ++i) {
    make_run(sparse[i], {.name = "sparse", .finished = i != 1, .seed = i + 1, .accuracy = 0.8});
    make_run(dense[i], {.name = "dense", .optimizer = sgd, .finished = i != 2, .seed = i + 1, .accuracy = 0.7});
  }
  std::vector<std::filesystem::path> runs;
  for (const auto* all : {&sparse, &dense}) {
    for (const TempRun& run : *all) runs.push_back(run.path());
  }
  const auto groups = read_groups(runs);
  CHECK(difference_text(groups.at(0), groups.at(1)) == "+10.00 points (1 pair)");
  // Of two seeds that are in both, no more can be compared.
  const auto two = read_groups({sparse[0].path(), dense[0].path(), dense[1].path()});
  CHECK(difference_text(two.at(0), two.at(1)) == "+10.00 points");
}

TEST_CASE("runs on different kinds of images are not compared") {
  TempRun made_up, cifar;
  make_run(made_up, {.name = "made_up"});
  make_run(cifar, {.name = "cifar", .optimizer = R"({"type": "sgd"})", .data = R"({"type": "cifar10", "path": "a"})"});
  CHECK(comparisons(read_groups({made_up.path(), cifar.path()})).empty());
}

TEST_CASE("a run that sends but little less is not told as one that sends less") {
  TempRun most, little, less;
  make_run(most, {.name = "most", .sent_bytes = 3000});
  make_run(little, {.name = "little", .sent_bytes = 2100});
  make_run(less, {.name = "less", .sent_bytes = 1900});
  const auto sentences = comparisons(read_groups({most.path(), little.path(), less.path()}));
  REQUIRE(sentences.size() == 1);
  CHECK_THAT(sentences[0], Catch::StartsWith("less sends 1.6 times fewer bytes than most: "));
}

TEST_CASE("runs are compared with those of as many workers") {
  const std::string sgd = R"({"type": "sgd"})";
  TempRun dense_4, dgc_4, dense_16, dgc_16;
  make_run(dense_4, {.name = "dense_4", .optimizer = sgd, .sent_bytes = 9000, .workers = 4});
  make_run(dgc_4, {.name = "dgc_4", .workers = 4});
  make_run(dense_16, {.name = "dense_16", .optimizer = sgd, .workers = 16});
  make_run(dgc_16, {.name = "dgc_16", .workers = 16});
  const auto sentences = comparisons(read_groups({dense_4.path(), dgc_4.path(), dense_16.path(), dgc_16.path()}));
  REQUIRE(sentences.size() == 2);
  CHECK_THAT(sentences[0], Catch::StartsWith("dgc_4 sends 450 times fewer bytes than dense_4: "));
  CHECK_THAT(sentences[1], Catch::StartsWith("dgc_16 sends 400 times fewer bytes than dense_16: "));
}

TEST_CASE("outcomes are compared seed by seed, or stand beside one another where no seed is in both") {
  const std::string sgd = R"({"type": "sgd"})";
  TempRun sparse_1, sparse_2, dense_1, dense_2, dense_3;
  make_run(sparse_1, {.name = "sparse", .accuracy = 0.70});
  make_run(sparse_2, {.name = "sparse", .seed = 2, .accuracy = 0.74});
  make_run(dense_1, {.name = "dense", .optimizer = sgd, .accuracy = 0.71});
  make_run(dense_2, {.name = "dense", .optimizer = sgd, .seed = 2, .accuracy = 0.78});
  make_run(dense_3, {.name = "dense", .optimizer = sgd, .seed = 3, .accuracy = 0.76});
  const auto sentence = [](const std::vector<std::filesystem::path>& runs) {
    return comparisons(read_groups(runs)).at(0);
  };
  // -1 and -4 points: 12.706 x 2.121 / sqrt(2)
  CHECK_THAT(sentence({sparse_1.path(), sparse_2.path(), dense_1.path(), dense_2.path()}),
             Catch::EndsWith("72.00 % against 74.50 %, with the same seeds a difference of -2.50 ± 19.06 points."));
  CHECK_THAT(sentence({sparse_1.path(), dense_3.path()}), Catch::EndsWith("70.00 % against 76.00 %."));
}

TEST_CASE("many sentences are folded") {
  std::vector<TempRun> folders(7);
  std::vector<std::filesystem::path> runs;
  make_run(folders[0], {.name = "dense", .optimizer = R"({"type": "sgd"})"});
  for (size_t i = 1; i < folders.size(); ++i) make_run(folders[i], {.name = "sparse" + std::to_string(i)});
  for (const TempRun& folder : folders) runs.push_back(folder.path());
  const auto page = report(runs);
  const size_t fold = page.find("<summary>2 more</summary>");
  CHECK(page.find("sparse4 sends") < fold);
  CHECK(page.find("sparse5 sends") > fold);
  CHECK(has(page, "sparse6 sends"));
}

TEST_CASE("a run that sends nothing is not compared") {
  TempRun alone, sparse;
  make_run(alone, {.name = "alone", .sent_bytes = 0});
  make_run(sparse, {.name = "sparse"});
  CHECK_FALSE(has(report({alone.path(), sparse.path()}), "alone sends"));
}

TEST_CASE("an unfinished run is shown as far as it got, and a run in warm-up has no ratio after it") {
  TempRun run;
  make_run(run, {.name = "half", .steps = 8, .finished = false});
  const auto page = report({run.path()});
  CHECK(has(page, "unfinished: epoch 0.8 of 2"));
  const auto table = squeeze(final_table(read_groups({run.path()})));
  INFO(table);
  CHECK(has(table, "half (unfinished)\n"));
  CHECK(has(table, "compression ratio * –\n"));
  CHECK(has(table, "images/s 100\n"));

  TempRun last;
  make_run(last, {.steps = 10, .finished = false});  // the warm-up's last step
  CHECK(has(squeeze(final_table(read_groups({last.path()}))), "sent per worker and step * –\n"));
}

TEST_CASE("an unfinished run is told by its newest evaluation, the median of its rates and the epochs behind it") {
  TempRun folder;
  make_run(folder, {.finished = false});
  RunData run = read_run(folder.path());
  run.evals.back().measures.set(kTestAccuracy, 0.8);
  CHECK(outcome_of(run) == 0.8);
  run.steps.back().epoch = 1.99996;
  CHECK(run.epochs_text() == "1.9 of 2");
  RunData longer = run;
  longer.config.training.epochs = 20000;
  CHECK(longer.epochs_text() == "2 of 20000");
  longer.steps.back().epoch = 0.19;
  CHECK(longer.epochs_text() == "0.2 of 20000");
  longer.steps.back().epoch = 12345.67;
  CHECK(longer.epochs_text() == "12345.7 of 20000");
  for (size_t i = 0; i < run.steps.size(); ++i) {
    run.steps[i].samples_per_s = i < 8 ? kNoNumber : 100.0 * static_cast<double>(i);  // 800 ... 1900
    if (i == 6) run.steps[i].local_steps = 4;                                         // which is skipped
  }
  const auto table = squeeze(final_table(group_runs({run})));
  INFO(table);
  CHECK(has(table, "images/s 1,400\n"));  // the upper one of two
  CHECK(has(table, "skipped steps 4\n"));
}

TEST_CASE("the columns of a table stand below one another, and its notes do not command the terminal") {
  const std::string text =
      summary_text({{"accuracy", "ratio"}, {{"dgc", {"90.12 % ± 0.08 %", "–"}}, {"é", {"–", "1.00x"}}}, {"a\x1b[2Jb"}});
  CHECK(text ==
        "             accuracy  ratio\n"
        "dgc  90.12 % ± 0.08 %      –\n"
        "é                   –  1.00x\n"
        "a\\x1b[2Jb\n");
}

TEST_CASE("a finished run that has lost the rows of its steps is told by its final row") {
  TempRun lost, whole;
  make_run(lost, {.steps = 0, .accuracy = 0.7});
  make_run(whole, {.seed = 2, .accuracy = 0.8});
  const auto table = squeeze(final_table(read_groups({lost.path()})));
  INFO(table);
  CHECK(has(table, "test accuracy 70.00 %\n"));
  CHECK(has(table, "compression ratio * –\n"));
  CHECK(has(table, "epochs 2 of 2\n"));
  CHECK(has(table, "skipped steps –\n"));
  CHECK_FALSE(has(table, "unfinished"));
  const std::string alone = report({lost.path()}), both = report({lost.path(), whole.path()});
  CHECK(has(alone, "no data yet"));
  CHECK(has(alone, "70.00 %"));
  CHECK(has(both, "75.00 % ± 7.07 %"));
  CHECK(page_curves(both).at("runs").at(0).at("steps").at("epoch").back() == 2);  // the other's course
  for (const std::string& page : {alone, both}) {
    CHECK_FALSE(has(page, "nan,"));
    CHECK_FALSE(has(page, ",nan"));
    drawn_by_script(page, "click over-bytes");
  }
}

TEST_CASE("a row that is wrong is named with its line") {
  TempRun run;
  make_run(run, {});
  std::string rows = run.read("metrics.jsonl");
  const size_t third = rows.find('\n', rows.find('\n') + 1) + 1, key = rows.find("sent_bytes", third);
  run.write("metrics.jsonl", rows.replace(key, 10, "seen_bytes"));
  CHECK_THROWS_WITH(read_groups({run.path()}),
                    Catch::Contains("metrics.jsonl: line 3: \"sent_bytes\" is missing or not an integer"));
}

TEST_CASE("twelve long runs still make a small page") {
  TempRun run;
  make_run(run, {.steps = 800});
  const std::vector<std::filesystem::path> runs(12, run.path());
  const std::string page = report(runs);
  CHECK(page.size() < 200'000);
  const Json all = page_curves(page);
  CHECK(all.at("runs").size() == 12);
  for (const Json& one : all.at("runs")) CHECK(one.at("steps").at("step").size() == 60);
}

TEST_CASE("a study's page leaves comparisons to the study's table, which knows what is compared with what") {
  TempRun dgc, dense, out;
  make_run(dgc, {.name = "sparse"});
  make_run(dense, {.name = "dense", .optimizer = R"({"type": "sgd"})"});
  const auto groups = read_groups({dgc.path(), dense.path()});
  REQUIRE(comparisons(groups).size() == 1);
  const SummaryTable table{{"test accuracy"}, {{"sparse", {"75.00 %"}}, {"dense", {"75.00 %"}}}, {}};
  write_summary_report("study", table, groups, out.path() / "report.html");
  CHECK(has(out.read("report.html"), "class=\"results study\""));
  CHECK_FALSE(has(out.read("report.html"), "times fewer bytes"));
}

TEST_CASE("every table of a page scrolls by itself, with a shade where it goes on behind the edge") {
  TempRun dgc, dense, out;
  make_run(dgc, {.name = "sparse"});
  make_run(dense, {.name = "dense", .optimizer = R"({"type": "sgd"})"});
  const SummaryTable table{{"test accuracy"}, {{"sparse", {"75.00 %"}}, {"dense", {"75.00 %"}}}, {}};
  write_summary_report("study", table, read_groups({dgc.path(), dense.path()}), out.path() / "report.html");
  const std::string page = out.read("report.html");
  CHECK(occurrences(page, "<table") == 3);  // the study's, results, configs
  CHECK(occurrences(page, "<div class=\"wide\"><table") == 3);
  CHECK(has(page, "<meta name=\"viewport\" content=\"width=device-width"));
  const std::string wide = between(page, "\n.wide {", "}");
  CHECK(has(wide, "overflow-x: auto;"));
  // What lies at both ends of the table moves with it, and covers the shade, which does not move.
  for (const char* side : {"left", "right"}) {
    CHECK(occurrences(wide, std::string("transparent) ") + side + " / ") == 2);
    CHECK(has(wide, std::string("transparent) ") + side + " / 48px 100% no-repeat local"));
    CHECK(has(wide, std::string("transparent) ") + side + " / 16px 100% no-repeat scroll"));
  }
  CHECK(occurrences(wide, "var(--shade)") == 2);
  CHECK(occurrences(page, "--shade: #") == 2);  // on light pages and on dark ones
}

TEST_CASE("runs of one name are told apart by their directories") {
  TempRun a, b;
  make_run(a, {});
  make_run(b, {});
  const auto table = squeeze(final_table(read_groups({a.path(), b.path()})));
  CHECK(has(table, a.path().string()));
  CHECK(has(table, b.path().string()));

  const auto hostile = a.path() / "<i>a";
  std::filesystem::create_directory(hostile);
  for (const char* file : {"config.json", "metrics.jsonl"}) std::filesystem::copy(a.path() / file, hostile / file);
  const auto page = report({hostile, a.path()});
  CHECK(has(page, "&lt;i&gt;a"));
  CHECK_FALSE(has(page, "<i>a"));
}

TEST_CASE("what is no run gets one clear sentence") {
  TempRun empty, no_step;
  CHECK_THROWS_WITH(final_table(read_groups({empty.path()})),
                    Catch::Contains(empty.path().string()) && Catch::Contains("not a run directory"));
  make_run(no_step, {.steps = 0, .finished = false});
  CHECK_THROWS_WITH(final_table(read_groups({no_step.path()})), Catch::Contains("no step is finished yet"));
  CHECK_THROWS_AS(final_table(read_groups({})), UserError);
  TempRun good;
  make_run(good, {});
  CHECK_THROWS_WITH(write_report(read_groups({good.path()}), "/nowhere/x.html"), Catch::Contains("/nowhere/x.html"));
}

TEST_CASE("nobody waits for the other end of a pipe that lies in the place of a run's file") {
  TempRun run;
  make_run(run, {});
  const auto file = run.path() / GENERATE("config.json", "metrics.jsonl");
  std::filesystem::remove(file);
  REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_run(run.path()), Catch::StartsWith(file.string() + " is a pipe"));
  CHECK_THROWS_WITH(open_rows(run.path()), Catch::StartsWith(file.string() + " is a pipe"));
  CHECK_THROWS_WITH(run_config(run.path()), Catch::StartsWith(file.string() + " is a pipe"));
}

}  // namespace dgc
