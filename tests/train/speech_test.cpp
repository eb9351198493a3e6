// A speech model from a config to its last row.
#include <catch.hpp>
#include <cmath>

#include "run/log.h"
#include "tasks/speech_scorer.h"
#include "tasks/task.h"
#include "tensor/errors.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny_speech.h"
#include "tools/evaluate.h"
#include "tools/report/report.h"
#include "tools/transcribe.h"
#include "train/rank.h"
#include "train/ranks/on_ranks.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

constexpr size_t kSpeechSteps = 3;  // of an epoch

std::string log_of(const fs::path& run) { return read_file(run / "log.txt"); }

}  // namespace

TEST_CASE("speech: a run says losses and error rates") {
  const TinySpeech speech;
  const fs::path run = train(speech.config(), {.out = speech.path("run")});
  const auto steps = rows_of_kind(run, "step"), evals = rows_of_kind(run, "eval");
  REQUIRE(steps.size() == 2 * kSpeechSteps);
  CHECK(steps[0].find("left_out") == nullptr);
  REQUIRE(evals.size() == 2);
  CHECK(evals[0].number("wer").value() >= 0);
  CHECK(evals[0].number("cer").value() >= 0);
  CHECK(evals[0].integer("left_out") == 0);
  CHECK(evals[0].find("test_accuracy") == nullptr);
  const Row final = metrics_of(run).back();
  CHECK(final.text("kind") == "final");
  CHECK(final.number("wer") == evals[1].number("wer"));
  CHECK(final.number("test_loss") == evals[1].number("test_loss"));
  CHECK_THAT(log_of(run), Catch::Contains("26 training and 6 test utterances") &&
                              Catch::Contains("test word error rate") && Catch::Contains("test character error rate") &&
                              Catch::Contains("utterances/s"));

  std::vector<std::string> said;
  const Evaluation e = evaluate_run(
      run, {.scoring = {.told = [&](const std::string& reference, const std::string&) { said.push_back(reference); }}});
  CHECK(e.metrics.measures[kTestLoss] == final.number("test_loss"));
  CHECK(e.metrics.measures[kWordErrorRate] == final.number("wer"));
  CHECK(e.metrics.measures[kCharacterErrorRate] == final.number("cer"));
  CHECK(said.size() == 6);
  for (const char* size : {"1", "3", "100"}) {  // other batches, other padding
    CAPTURE(size);
    const Evaluation other = evaluate_run(run, {.overrides = {std::string("training.eval_batch=") + size}});
    CHECK(other.metrics.measures[kTestLoss] == Approx(e.metrics.measures[kTestLoss]).epsilon(1e-4));
  }
  CHECK_THROWS_WITH(evaluate_run(run, {.logits = speech.path("logits")}), Catch::Contains("--logits"));
  CHECK_THAT(final_table(read_groups({run})), Catch::Contains("test word error rate") &&
                                                  Catch::Contains("test character error rate") &&
                                                  Catch::Contains("utterances/s") && !Catch::Contains("accuracy"));
  write_report(read_groups({run}), speech.path("report.html"));
  CHECK_THAT(read_file(speech.path("report.html")),
             Catch::Contains("Test word error rate") && !Catch::Contains("Test accuracy"));
}

TEST_CASE("speech: a model learns two letters, and transcribes what it is given") {
  const TinySpeech speech;
  const fs::path run =
      train(speech.config({"training.epochs=40", "model.hidden=16", "training.eval_every_epochs=0",
                           R"(optimizer={"type": "sgd", "momentum": 0.9, "nesterov": true, "clip_norm": 100})"}),
            {.out = speech.path("run")});
  CHECK(metrics_of(run).back().number("wer").value() < 0.2);
  CHECK(metrics_of(run).back().number("cer").value() < 0.1);

  std::vector<std::string> files, texts;
  for (int i = 26; i < 32; ++i) files.push_back(speech.path(fmt::format("{}.wav", i)).string());
  const auto hear = [&](const TranscribeOptions& options) {
    texts.clear();
    transcribe(run, files, options, [&](const std::string& file, const std::string& text) {
      CHECK(file == files[texts.size()]);
      texts.push_back(text);
    });
  };
  hear({});
  std::map<std::string, std::string> heard;  // alone, without padding, it is what an evaluation hears
  for (size_t i = 0; i < files.size(); ++i) heard[tiny_sentence(26 + static_cast<int>(i))] = texts[i];
  evaluate_run(
      run,
      {.scoring = {.told = [&](const std::string& said, const std::string& text) { CHECK(heard[said] == text); }}});

  // A word model that knows one word makes it of all.
  speech.write("words.arpa", "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-0.5 </s>\n-0.1 AB\n-20 <unk>\n\n\\end\\\n");
  hear({.overrides = {}, .decoding = {.beam = 16, .words = speech.path("words.arpa"), .word_weight = 5}});
  for (const std::string& text : texts) {
    CAPTURE(text);
    for (const char c : text) CHECK(std::string("AB ").find(c) != std::string::npos);
  }
  CHECK_THROWS_WITH(hear({.overrides = {}, .decoding = {.words = speech.path("words.arpa")}}),
                    Catch::Contains("--lm: a word model needs a beam search"));
  const Alphabet letters("AB");
  CHECK_THROWS_WITH(SpeechDecoder(letters, {.beam = 16, .words = speech.path("words.arpa")}),
                    Catch::Contains("--lm: a word model needs words"));
}

TEST_CASE("speech: workers give the same bits as threads and one after another") {
  const TinySpeech speech;
  const auto after = [&](int ranks, int workers) {
    const Config config = speech.config({fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers)});
    const Datasets sets = open_sets(config);
    std::tuple<std::string, double, double> outcome;
    on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
      Rank rank(config, sets.view(), backend, communicator);
      for (size_t i = 0; i < kSpeechSteps + 1; ++i) {
        rank.train_step();
        rank.finish_steps();
        rank.next_metrics();
      }
      rank.check_replicas();
      const EvalMetrics eval = rank.evaluate_all();
      if (communicator.rank() == 0)
        outcome = {rank.weights_xxh64(), eval.measures[kTestLoss], eval.measures[kCharacterErrorRate]};
    });
    return outcome;
  };
  const auto one = after(1, 4);
  CHECK(one == after(4, 1));
  CHECK(one == after(2, 2));
  CHECK(std::get<0>(one) != std::get<0>(after(1, 2)));
}

TEST_CASE("speech: a run that is killed after any step and resumed ends as one that was not") {
  const TinySpeech speech;
  const auto variant = GENERATE(
      std::vector<std::string>{"data.augment.noise_probability=0.5", "data.augment.min_tempo=0.9",
                               "data.augment.mask.time_masks=1", "data.augment.mask.time_frames=3"},
      std::vector<std::string>{R"(optimizer={"type": "sgd", "clip_norm": 100})", "ranks=2", "workers_per_rank=2",
                               "model.bidirectional=false", "model.lookahead=3", "model.cell=lstm"});
  auto saving = variant;
  saving.insert(saving.end(), {"checkpoint.every_steps=1", "checkpoint.keep=100"});
  const fs::path whole = train(speech.config(saving), {.out = speech.path("whole")});
  const auto truth = timeless_rows(whole);
  for (const int64_t stop : {1, 3, 4, 6}) {
    CAPTURE(stop);
    const fs::path killed = speech.path(fmt::format("killed{}", stop));
    fs::copy(whole, killed, fs::copy_options::recursive);
    kill_after(killed, stop);
    train(speech.config(variant), {.out = killed, .resume = true});
    CHECK(timeless_rows(killed) == truth);
  }
}

TEST_CASE("speech: resumed with other workers, the epoch goes on in another order") {
  const TinySpeech speech;
  const fs::path run = train(speech.config({"training.max_steps=2"}), {.out = speech.path("run")});
  train(speech.config({"workers_per_rank=2"}), {.out = run, .resume = true});
  CHECK_THAT(log_of(run),
             Catch::Contains("4 of 6 steps of epoch 1 count as done, and the rest of it comes in another"));
  CHECK(metrics_of(run).back().number("epoch") == 2.0);
}

TEST_CASE("speech: utterances that are too short for their transcripts are counted and shown") {
  const TinySpeech speech;
  const auto [shorts, trained, tested] = GENERATE(table<int, std::string, std::string>(
      {{1, "1 utterance since the last evaluation was too short for its transcript, and taught nothing; such a one has",
        "the test loss leaves out 1 utterance that is too short for its transcript; such a one has fewer steps than"},
       {2, "2 utterances since the last evaluation were too short for their transcripts, and taught nothing; such a",
        "the test loss leaves out 2 utterances that are too short for their transcripts; such a one has fewer "
        "steps"}}));
  std::string lines;
  for (int i = shorts; i < 8; ++i) lines += speech.line(fmt::format("{}.wav", i), "AB", "AB");
  const std::string too_long(40, 'A');  // 80 steps at the least
  for (int i = 0; i < shorts; ++i) lines += speech.line(fmt::format("short{}.wav", i), "A", too_long);
  speech.write("train.jsonl", lines);
  speech.write("test.jsonl", lines);
  const fs::path run = train(speech.config({"training.epochs=1"}), {.out = speech.path("run")});
  const auto steps = rows_of_kind(run, "step");
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].integer("left_out") == shorts);
  CHECK(std::isfinite(steps[0].number("loss").value()));
  const Row eval = rows_of_kind(run, "eval").at(0);
  CHECK(eval.integer("left_out") == shorts);
  CHECK(std::isfinite(eval.number("test_loss").value()));
  CHECK_THAT(log_of(run), Catch::Contains(trained) && Catch::Contains(tested));
  const std::string named = shorts == 1 ? "1 of 8 utterances is too short for its transcript, the shortest first: "
                                        : "2 of 8 utterances are too short for their transcripts, the shortest first: ";
  for (const char* set : {"training", "test"}) {
    CHECK_THAT(log_of(run),
               Catch::Contains(fmt::format("the {} set: {}", set, named)) && Catch::Contains("short0.wav"));
  }
}

TEST_CASE("speech: bad examples are refused by name, or skipped and told") {
  const TinySpeech speech;
  const auto lines = [&](const std::string& more) {
    std::string all;
    for (int i = 0; i < 9; ++i) all += speech.line(fmt::format("{}.wav", i), tiny_sentence(i), tiny_sentence(i));
    speech.write("train.jsonl", all + more);
  };
  const std::string bad_text = speech.line("x.wav", "AB", "ABC");
  lines(bad_text);
  CHECK_THROWS_WITH(train(speech.config(), {.out = speech.path("refused")}),
                    Catch::Contains("the character 'C'") && Catch::Contains("train.jsonl"));
  CHECK_FALSE(fs::exists(speech.path("refused")));
  const fs::path skipped =
      train(speech.config({"data.on_bad_example=skip", "training.epochs=1"}), {.out = speech.path("skipped")});
  CHECK_THAT(log_of(skipped), Catch::Contains("9 training and 6 test utterances") &&
                                  Catch::Contains("the training set: 1 utterance left out; the first: "));

  // What shows when the header is read.
  lines("");
  fs::resize_file(speech.path("4.wav"), 200);
  CHECK_THROWS_WITH(train(speech.config({"training.epochs=1"}), {.out = speech.path("cut")}), Catch::Contains("4.wav"));
  const fs::path read = train(speech.config({"data.on_bad_example=skip"}), {.out = speech.path("read")});
  CHECK_THAT(log_of(read), Catch::Contains("4.wav"));
}

TEST_CASE("speech: what does not fit is said before anything is made") {
  const TinySpeech speech;
  const auto refused = [&](const std::vector<std::string>& overrides) {
    try {
      train(speech.config(overrides), {.out = speech.path("run")});
    } catch (const UserError& error) {
      CHECK_FALSE(fs::exists(speech.path("run")));
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({"training.batch_per_worker=20"}), Catch::Contains("the training set has only 26"));
  CHECK_THAT(refused({"model.convolutions.kernel_frequencies=[60]"}),
             Catch::Contains("convolution 1 spans 60 frequencies, and its input has 41"));
  CHECK_THAT(refused({"data.path=" + speech.path("nowhere").string()}), Catch::Contains("nowhere"));
  CHECK_THAT(refused({"data.train=[\"none.jsonl\"]"}), Catch::Contains("none.jsonl"));
}

TEST_CASE("speech: what cannot transcribe says why") {
  const TinySpeech speech;
  const fs::path run = train(speech.config({"training.max_steps=1"}), {.out = speech.path("run")});
  const auto hear = [&](const fs::path& with, const std::string& file) {
    transcribe(with, {file}, {}, [](const std::string&, const std::string&) {});
  };
  CHECK_THROWS_WITH(hear(run, speech.path("none.wav").string()), Catch::Contains("none.wav"));
  CHECK_THROWS_WITH(hear(run, speech.path("train.jsonl").string()), Catch::Contains("train.jsonl"));
  speech.line("long.wav", std::string(40, 'A'), "A");
  CHECK_THROWS_WITH(hear(run, speech.path("long.wav").string()), Catch::Contains("data.max_seconds"));
  CHECK_THROWS_WITH(hear(speech.path("nothing"), speech.path("1.wav").string()),
                    Catch::Contains("is not a run directory"));
  const fs::path images = train(tiny_config({"training.max_steps=1"}), {.out = speech.path("images")});
  CHECK_THROWS_WITH(hear(images, speech.path("1.wav").string()), Catch::Contains("is not the run of a speech model"));
  CHECK_THROWS_WITH(evaluate_run(images, {.scoring = {.decoding = {.beam = 4}}}), Catch::Contains("--beam"));
}

TEST_CASE("a recording that can be read no longer is told once, and in each evaluation") {
  const TinySpeech speech;
  const TempRun run;
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += speech.line(fmt::format("{}.wav", i), tiny_sentence(i), tiny_sentence(i));
  speech.write("train.jsonl", lines);
  const Config written = speech.config({"data.on_bad_example=skip", "training.epochs=4", "workers_per_rank=1"});
  const Datasets sets = open_sets(written);
  const Config config = task_of(written).completed(written, sets);
  for (const char* name : {"4.wav", "30.wav"}) fs::resize_file(speech.path(name), 200);  // once all have been listed
  {
    const RunLog log(run.path());
    on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
      Rank rank(config, sets.view(), backend, communicator);
      make_steps(rank, 16);
      rank.evaluate();
    });
  }
  CHECK(occurrences(run.read("log.txt"), "left out of the training: ") == 1);
  CHECK(occurrences(run.read("log.txt"), "left out of the evaluation: ") == 1);
}

TEST_CASE("speech: ranks share an evaluation out, also where a batch has nobody left") {
  const TinySpeech speech;
  const auto config_on = [&](int ranks) {
    return speech.config({"data.on_bad_example=skip", "training.eval_batch=2", fmt::format("ranks={}", ranks),
                          fmt::format("workers_per_rank={}", 6 / ranks)});
  };
  const Datasets sets = open_sets(config_on(1));
  const auto& test = dynamic_cast<const Speech&>(*sets.test);
  const auto spoil = [&](int64_t i) { fs::resize_file(test.corpus().utterance(i).path, 200); };
  const auto measured = [&](int ranks) {
    const Config config = config_on(ranks);
    std::vector<Measures> all(static_cast<size_t>(ranks));
    const TempRun run;
    {
      const RunLog log(run.path());
      on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
        Rank rank(config, sets.view(), backend, communicator);
        test::step(rank);
        all[static_cast<size_t>(communicator.rank())] = rank.evaluate().measures;
      });
    }
    CHECK(occurrences(run.read("log.txt"), "left out of the evaluation: ") == 3);
    for (const Measures& one : all) CHECK(one.all() == all.front().all());
    return all.front().all();
  };
  for (const int64_t i : {1, 2, 3}) spoil(i);
  const auto alone = measured(1);
  CHECK(std::isfinite(alone.front().second));
  CHECK(measured(2) == alone);
  CHECK(measured(3) == alone);
  CHECK(measured(6) == alone);

  for (const int64_t i : {0, 4, 5}) spoil(i);
  const int ranks = GENERATE(1, 3);
  CHECK_THROWS_WITH(
      on_ranks(config_on(ranks), {},
               [&](Backend& backend, Communicator& communicator) {
                 Rank(config_on(ranks), sets.view(), backend, communicator).evaluate();
               }),
      Catch::Contains("not one of 6 utterances can be read; of the first: " + test.corpus().utterance(0).path));
}

}  // namespace dgc
