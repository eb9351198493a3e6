#include <fmt/core.h>

#include <catch.hpp>
#include <sstream>

#include "config/config.h"
#include "json/lines.h"
#include "paths.h"
#include "tests/commands/trained.h"
#include "tests/support/json_lines.h"
#include "tools/step_model.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

}  // namespace

TEST_CASE("every command has a help with an example") {
  const std::vector<std::string> command = GENERATE(
      std::vector<std::string>{}, std::vector<std::string>{"train"}, std::vector<std::string>{"eval"},
      std::vector<std::string>{"generate"}, std::vector<std::string>{"plan"}, std::vector<std::string>{"bench"},
      std::vector<std::string>{"bench", "dgc"}, std::vector<std::string>{"bench", "train"},
      std::vector<std::string>{"bench", "data"}, std::vector<std::string>{"report"}, std::vector<std::string>{"config"},
      std::vector<std::string>{"info"}, std::vector<std::string>{"manual"}, std::vector<std::string>{"completion"},
      std::vector<std::string>{"study"}, std::vector<std::string>{"transcribe"}, std::vector<std::string>{"predict"},
      std::vector<std::string>{"help"});
  CAPTURE(command);
  const Program dgc;
  auto arguments = command;
  arguments.push_back("--help");
  const Result help = dgc.run(arguments);
  CHECK(help.code == 0);
  CHECK_THAT(help.out, Contains("Example"));
  std::string name = "dgc";
  for (const std::string& word : command) name += " " + word;
  CHECK_THAT(help.out, Contains(name));
  CHECK(help.err.empty());
  arguments.pop_back();
  arguments.insert(arguments.begin(), "help");
  CHECK(dgc.run(arguments).out == help.out);
}

TEST_CASE("a quiet training shows warnings and the result alone, and its log has everything") {
  const Program dgc;
  const Result quiet = dgc.run({"train", "tiny.json", "--quiet", "--out", "run"});
  CHECK(quiet.code == 0);
  CHECK(quiet.err.empty());
  CHECK_THAT(quiet.out, Contains("test accuracy"));
  CHECK_THAT(dgc.read("run/log.txt"), Contains("epoch 3/3"));
}

TEST_CASE("a wrong command line is said in one sentence, exit code 2") {
  const auto [arguments, expected] = GENERATE(table<std::vector<std::string>, std::string>({
      {std::vector<std::string>{}, "dgc: a subcommand is required"},
      {{"help", "trian"}, "there is no command \"trian\"; did you mean \"train\"?"},
      {{"trian", "x.json"}, "dgc: there is no command \"trian\"; did you mean \"train\"?"},
      {{"frobnicate"}, "dgc: there is no command \"frobnicate\""},
      {{"--frob"}, "dgc: there is no option \"--frob\""},
      {{"train"}, "dgc train: CONFIG is required"},
      {{"train", "tiny.json", "--frob"}, "dgc train: there is no option \"--frob\""},
      {{"train", "tiny.json", "--resmue"}, "there is no option \"--resmue\"; did you mean \"--resume\"?"},
      {{"train", "tiny.json", "--epochs", "3"},
       "dgc train: there is no option \"--epochs\"; write --set training.epochs=3 (dgc train --help tells more)"},
      {{"train", "--epochs", "3", "tiny.json"}, "there is no option \"--epochs\"; write --set training.epochs=VALUE ("},
      {{"train", "tiny.json", "--device=cuda:0"}, "there is no option \"--device\"; write --set device=cuda:0 ("},
      {{"plan", "tiny.json", "--batch-size", "64"}, "write --set training.batch_per_worker=64 ("},
      {{"predict", "run", "x.png", "--best"}, "dgc predict: there is no option \"--best\" (dgc predict"},
      {{"predict", "run", "x.png", "--device", "cpu"}, "there is no option \"--device\"; write --set device=VALUE ("},
      {{"eval", "run", "--eval-batch", "8"},
       "there is no option \"--eval-batch\"; write --set training.eval_batch=8 ("},
      {{"eval", "run", "--lr", "1"}, "dgc eval: there is no option \"--lr\" (dgc eval"},
      {{"report", "run", "--epochs", "3"}, "dgc report: there is no option \"--epochs\" (dgc report"},
      {{"--set", "seed=4", "config", "tiny.json"},
       "dgc config: \"--set\" is in the wrong place: write it behind the command, and before a lone \"--\" (dgc"},
      {{"train", "--", "-x.json", "--set", "seed=1"}, "dgc train: \"--set\" is in the wrong place"},
      {{"train", "tiny.json", "--out", ""}, "--out: it is empty"},
      {{"train", "tiny.json", "--out=~/q"}, "write \"$HOME/q\", or in a file the whole path; write ./~/q for a folder"},
      {{"train", "tiny.json", "--out", "runs/{name}"}, "--out: {name} stands for the run's name in a config's output"},
      {{"study", "study.json", "--out", "~/st"}, "dgc study: --out: a shell puts your home for ~ only where a word"},
      {{"eval", "run", "--lm", ""}, "--lm: it is empty"},
      {{"report", "run", "-o", " "}, "--output: it is empty"},
      {{"--", "train", "tiny.json"}, "dgc: \"--\" is in the wrong place: write it behind the command"},
      {{"eval", "run", "--logits", "-"}, "--logits: it has to be a file, and - is standard output"},
      {{"plan", "tiny.json", "--step-ms", "5", "--bandwidth", ""}, "--bandwidth: it is empty"},
      {{"bench", "--", "dgc"}, "dgc bench: \"dgc\" is in the wrong place: write it before a lone \"--\""},
      {{"train", "tiny.json", "--max-restarts", "08"}, "--max-restarts: \"08\" is no whole number"},
      {{"train", "tiny.json", "other.json"}, "dgc train: too many arguments: other.json; one CONFIG is taken (dgc"},
      {{"train", "--", "a.json", "b.json"}, "dgc train: too many arguments: b.json; one CONFIG is taken (dgc train"},
      {{"train", "--", "a.json", "-x.json"}, "dgc train: too many arguments: -x.json; one CONFIG is taken (dgc train"},
      {{"train", "tiny.json", "-x"}, "dgc train: there is no option \"-x\" (dgc train"},
      {{"train", "tiny.json", "-o", "runs/z"},
       "dgc train: there is no option \"-o\"; did you mean \"--out\" or \"--overwrite\"? (dgc train"},
      {{"-q", "train", "tiny.json"}, "dgc train: \"-q\" is in the wrong place: write it behind the command"},
      {{"train", "--set", "optimizer.sparsity", "0.99", "tiny.json"},
       "dgc train: --set optimizer.sparsity: write it as KEY=VALUE (dgc train"},
      {{"info", "tiny.json"}, "dgc info: too many arguments: tiny.json (dgc info"},
      {{"train", "tiny.json", "--out"}, "dgc train: --out: its value is missing"},
      {{"train", "tiny.json", "--set"}, "dgc train: --set: its value is missing"},
      {{"train", "tiny.json", "--out", "a", "--out", "b"}, "--out: it is given 2 times, and may be given once"},
      {{"config", "--schema", "--set", "seed=1"}, "dgc config: --set excludes --schema"},
      {{"eval"}, "dgc eval: RUN is required"},
      {{"bench"}, "dgc bench: a subcommand is required"},
      {{"bench", "dcg"}, "dgc bench: there is no command \"dcg\"; did you mean \"dgc\"?"},
      {{"bench", "data", "tiny.json", "--seconds", "0"}, "--seconds: \"0\" is no number from 0.001 to 86400"},
      {{"bench", "dgc", "--steps", "0"}, "--steps: \"0\" is no whole number from 1 to 100000"},
      {{"bench", "dgc", "--steps", "many"}, "--steps: \"many\" is no whole number"},
      {{"bench", "dgc", "--sparsity", "1"}, "--sparsity: \"1\" is no number from 0 to below 1"},
      {{"bench", "dgc", "--sparsity", "nan"}, "--sparsity: \"nan\" is no number"},
      {{"bench", "dgc", "--model", "resnet51"},
       "--model: \"resnet51\" is none of deep_speech, one_tensor, ptb_lstm, resnet50; did"},
      {{"generate", "run", "--seed", "-1"}, "--seed: \"-1\" is no whole number from 0"},
      {{"generate", "run", "--temperature", "inf"}, "--temperature: \"inf\" is no number from 0 to 1000"},
      {{"eval", "run", "--word-weight", "nan"}, "--word-weight: \"nan\" is no number"},
      {{"plan", "tiny.json", "--workers", "1,,2"}, "--workers: \"\" is no whole number from 1"},
      {{"plan", "tiny.json", "--workers", ""}, "--workers"},
      {{"plan", "tiny.json", "--step-ms", "nan", "--bandwidth", "1Gbps"}, "--step-ms: \"nan\" is no number"},
      {{"plan", "tiny.json", "--workers", "-1"}, "--workers"},
      {{"plan", "tiny.json", "--bandwidth", "1Gbps"}, "--step-ms"},
      {{"plan", "tiny.json", "--step-ms", "5"}, "--bandwidth"},
      {{"plan", "tiny.json", "--workers", "4,0"}, "--workers"},
      {{"plan", "tiny.json", "--device-model", "B200"}, "--device-model: \"B200\" is none of a100, h100, h200"},
      {{"report"}, "dgc report: RUN is required"},
      {{"config"}, "dgc config: name a config file"},
  }));
  CAPTURE(arguments);
  const Program dgc;
  const Result result = dgc.run(arguments);
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Catch::StartsWith("error: dgc") && Contains(expected));
  CHECK(is_one_line(result.err));
  CHECK(result.out.empty());
}

TEST_CASE("what is wrong in a config or file is said in one sentence, exit code 2") {
  const auto [arguments, first, second] = GENERATE(table<std::vector<std::string>, std::string, std::string>({
      {{"train", "tiny.json", "--set", "optimizer.sparsty=0.9"}, "optimizer.sparsty", "sparsity"},
      {{"train", "tiny.json", "--set", "seed=-1"}, "seed", ""},
      {{"train", "tiny.json", "--set", "nonsense"}, "nonsense", ""},
      {{"train", "tiny.json", "--launch", "env WORDS='a b'"}, "--launch: it is split at blanks", "into a script"},
      {{"train", "nowhere.json"}, "nowhere.json", ""},
      {{"train", "broken.json"}, "broken.json", "line 1"},
      {{"train", "tiny.json", "--set", "training.batch_per_worker=999"}, "training.batch_per_worker", "100"},
      {{"train", "tiny.json", "--set", R"(data={"type": "cifar10", "path": "nowhere"})", "--set", "model.classes=10"},
       "",
       ""},
      {{"train", "tiny.json", "--out", "tiny.json/run"}, "tiny.json/run", ""},
      {{"train", "tiny.json", "--set", "device=\"cuda:99\""}, "cuda:99", ""},
      {{"plan", "nowhere.json"}, "nowhere.json", ""},
      {{"plan", "tiny.json", "--bandwidth", "fast", "--step-ms", "5"}, "--bandwidth", "\"fast\" is no bandwidth"},
      {{"plan", "tiny.json", "--bandwidth", "1Gbps", "--latency", "5", "--step-ms", "5"}, "--latency", "as in 50us"},
      {{"plan", "tiny.json", "--set", "exchange.workers_per_group=3"},
       "exchange.workers_per_group: 4 workers",
       "cannot be divided into groups of 3"},
      {{"plan", "tiny.json", "--set", "exchange.workers_per_group=2", "--workers", "4,7"},
       "exchange.workers_per_group: 7 workers",
       ""},
      {{"config", "nowhere.json"}, "nowhere.json", ""},
      {{"config", "/dev/zero"}, "/dev/zero: longer than", ""},
      {{"config", "\x1b[2J.json"}, "error: \\x1b[2J.json: cannot open", ""},
      {{"train", "tiny.json", "--set", "data.train_samples=2147483647"}, "data.train_samples", "at most 100000000"},
      {{"train", "tiny.json", "--set", "data.height=4096", "--set", "data.width=4096", "--set", "data.channels=1024"},
       "data.height, data.width and data.channels: 4096x4096x1024",
       ""},
      {{"eval", "nowhere"}, "nowhere", ""},
      {{"report", "nowhere"}, "nowhere", ""},
      {{"bench", "train", "nowhere.json"}, "nowhere.json", ""},
      {{"bench", "data", "tiny.json", "--set", "training.batch_per_worker=999"}, "training.batch_per_worker", "100"},
  }));
  CAPTURE(arguments);
  const Program dgc;
  dgc.write("broken.json", "{\"model\": ]");
  const Result result = dgc.run(arguments);
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Catch::StartsWith("error: ") && Contains(first) && Contains(second));
  CHECK(is_one_line(result.err));
}

TEST_CASE("train, eval, report: from a config to a page") {
  const Program dgc;
  const Result trained =
      dgc.run({"train", "tiny.json", "--out", "run", "--set", "training.epochs=2", "--set", "training.max_steps=10"});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.out, Contains("accuracy"));
  const Row final = dgc.rows("run").back();
  REQUIRE(final.text("kind") == "final");

  const Result evaluated = dgc.run({"eval", "run", "--logits", "logits.safetensors"});
  REQUIRE(evaluated.code == 0);
  CHECK_THAT(evaluated.out, Contains(fmt::format("{:.2f} %", 100 * *final.number("test_accuracy"))));
  CHECK_THAT(evaluated.out, Contains(*final.text("weights_xxh64")));
  const Row as_json = read_json_line(dgc.run({"eval", "run", "--json"}).out, "eval");
  CHECK(as_json.number("test_accuracy") == final.number("test_accuracy"));
  CHECK(as_json.text("weights_xxh64") == final.text("weights_xxh64"));
  CHECK(as_json.number("epoch") == final.number("epoch"));
  CHECK(dgc.run({"eval", "run", "--logits", "run/metrics.jsonl"}).code == 2);
  const std::string newest = "run/checkpoints/" + dgc.checkpoints("run").front();
  CHECK(dgc.run({"eval", "run", "--logits", newest + "/weights.safetensors"}).code == 2);
  CHECK(dgc.run({"report", "run", "-o", newest + "/manifest.json"}).code == 2);
  const Result nowhere = dgc.run({"eval", "run", "--logits", "/no/such/folder/logits.safetensors"});
  CHECK(nowhere.code == 2);
  CHECK(nowhere.out.empty());
  CHECK(dgc.rows("run").back() == final);
  CHECK(dgc.read("logits.safetensors").size() > 30 * 4 * 4);

  REQUIRE(dgc.run({"train", "tiny.json", "--out", "dense", "--set", R"(optimizer={"type": "sgd"})"}).code == 0);
  const Result reported = dgc.run({"report", "run", "dense", "-o", "report.html"});
  REQUIRE(reported.code == 0);
  CHECK_THAT(reported.out, Contains("report.html"));
  const std::string html = dgc.read("report.html");
  CHECK_THAT(html, Contains("<svg"));
  for (const std::string outside : {"src=\"http", "href=\"http", "url(", "@import"})
    CHECK_THAT(html, !Contains(outside));

  const Result again = dgc.run({"train", "tiny.json", "--out", "run"});
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Contains("--resume") && Contains("--out"));

  for (const auto& checkpoint : dgc.checkpoints("run")) {
    const std::string weights = "run/checkpoints/" + checkpoint + "/weights.safetensors";
    std::string bytes = dgc.read(weights);
    bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 4);
    dgc.write(weights, bytes);
  }
  const Result damaged = dgc.run({"eval", "run"});
  CHECK(damaged.code == 2);
  CHECK_THAT(damaged.err, Contains("weights.safetensors is damaged") && Contains("none of the 2 checkpoints"));
}

TEST_CASE("the printed config is a config, and the same one") {
  const Program dgc;
  const Result first = dgc.run({"config", "tiny.json", "--set", "optimizer.sparsity=0.97"});
  REQUIRE(first.code == 0);
  dgc.write("again.json", first.out);
  const Result second = dgc.run({"config", "again.json"});
  CHECK(second.out == first.out);
  CHECK(parse_config(first.out, "again.json").optimizer.sparsity.final == 0.97);
  CHECK_THAT(dgc.run({"config", "--schema"}).out, Contains("\"$schema\""));
  CHECK_THAT(dgc.run({"config", "--reference"}).out, Contains("batch_per_worker"));
  CHECK(dgc.run({"config", "--schema", "tiny.json"}).code == 2);
}

TEST_CASE("a printed config does not command the terminal, and is the same config all the same") {
  const Program dgc;
  const Result printed = dgc.run({"config", "tiny.json", "--set", "output=a\u009b2J\x7f\u202e"});
  CHECK(printed.code == 0);
  CHECK_THAT(printed.out, Contains(R"("output": "a\u009b2J\u007f\u202e")"));
  dgc.write("again.json", printed.out);
  CHECK(dgc.run({"config", "again.json"}).out == printed.out);
}

TEST_CASE("plan prints the paper's numbers, info the machine's") {
  const Program dgc;
  const Result alexnet = dgc.run({"plan", DGC_SOURCE_DIR "/configs/paper/alexnet_imagenet.json"});
  REQUIRE(alexnet.code == 0);
  CHECK_THAT(alexnet.out, Contains("232.56 MiB dense") && Contains("0.389 MiB") && Contains("597.7x"));
  const Result resnet = dgc.run({"plan", DGC_SOURCE_DIR "/configs/paper/resnet50_imagenet.json", "--workers", "64"});
  REQUIRE(resnet.code == 0);
  CHECK_THAT(resnet.out, Contains("97.49 MiB dense") && Contains("0.352 MiB") && Contains("276.7x"));
  CHECK_THAT(resnet.out, Contains("64 workers") && Contains("97.917 %"));  // 1 - 8 / (64 x 6)
  // 25,557,032 parameters twice and 2 x 26,560 statistics, 4 bytes each.
  CHECK_THAT(resnet.out, Contains("A checkpoint at the end of an epoch takes at most ") &&
                             Contains("and 195 MiB for weights and momentum, and a few KiB"));
  CHECK_THAT(resnet.out, !Contains("speed-up"));
  const Result plain = dgc.run({"plan", "tiny.json", "--set", R"(optimizer={"type": "sgd", "momentum": 0})"});
  CHECK_THAT(plain.out, Contains(" for weights, and a few KiB"));
  const Result projected = dgc.run({"plan", DGC_SOURCE_DIR "/configs/paper/resnet50_imagenet.json", "--workers", "8,48",
                                    "--bandwidth", "1Gbps", "--step-ms", "100"});
  REQUIRE(projected.code == 0);
  CHECK_THAT(projected.out, Contains("between 8 workers") && Contains("between 48 workers") && Contains("1000 Mbps"));
  // 2 x 7 / 8 x 4 bytes x 25,557,032 parameters and 7 x 40 bytes, in 21 messages: 1431.2 ms + 1.05.
  CHECK_THAT(projected.out, Contains("8     1532.25      0.5x      816.65      1.0x"));
  CHECK_THAT(projected.out, Contains("the exchange of 48 workers takes 5 % of the time of such steps on a link of"));
  const Result rarely = dgc.run({"plan", "tiny.json", "--set", "exchange.every_steps=8", "--device-model", "h100"});
  REQUIRE(rarely.code == 0);
  CHECK_THAT(rarely.out, Contains("per exchange, after 8 steps") && Contains("that ends with an exchange"));
  CHECK_THAT(rarely.out, Contains("bytes/sample") && Contains("the exchange of 4 workers takes 5 % of the time"));
  // 8 steps of 4 bytes for each of 4,832 parameters, over 1,168 bytes: of the total, of the format and of the phase.
  const std::string ratio = "132.4x";
  size_t ratios = 0;
  for (size_t at = 0; (at = rarely.out.find(ratio, at)) != std::string::npos; ++at) ++ratios;
  CHECK(ratios == 3);
  CHECK_THAT(rarely.out, Contains(" 36.5  sparse\n"));  // 1,168 bytes, of a worker that has seen 8 x 4 images
  const StepModel model =
      model_step(load_config((dgc.folder() / "tiny.json").string(), {"exchange.every_steps=8"}), device_model("h100"));
  CHECK_THAT(rarely.out, Contains(fmt::format("{:>10.1f} {:>10.1f} {:>10.3f} 100.00 %",
                                              static_cast<double>(model.total.bytes) / 1e6, model.total.flops / 1e9,
                                              1e3 * model.total.seconds)));
  const auto mib_of = [&](const std::string& what) {
    return std::stod(alexnet.out.substr(alexnet.out.find("\n  " + what) + 3 + what.size()));
  };
  CHECK(mib_of("device total") >= mib_of("weights") + mib_of("gradients") + mib_of("activations"));
  CHECK(mib_of("process total") == Approx(mib_of("device total") + mib_of("this program")).margin(0.011));
  const Result otherwise = dgc.run({"plan", "tiny.json", "--set", "exchange.transport=dense"});
  CHECK_THAT(otherwise.out, Contains("where messages go to all, as they do not here (below)"));
  const auto memory_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", "tiny.json", "--set", "workers_per_rank=2"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string said = dgc.run(words).out;
    const size_t begin = said.find("Memory of one rank");
    return said.substr(begin, said.find("this program") - begin);
  };
  CHECK(memory_of({"--workers", "8"}) == memory_of({"--set", "ranks=4"}));
  CHECK(memory_of({"--workers", "8"}) != memory_of({}));
  const Result dense = dgc.run({"plan", "tiny.json", "--set", R"(optimizer={"type": "sgd"})"});
  CHECK(dgc.run({"plan", "tiny.json", "--set", "workers_per_rank=1", "--set", "exchange.workers_per_group=8",
                 "--workers", "8,64"})
            .code == 0);
  CHECK_THAT(dense.out,
             Contains("tiny trains with sgd: each worker sends 19328 B per step") && Contains("it would send"));
  CHECK_THAT(
      dgc.run({"plan", "tiny.json", "--set", R"(optimizer={"type": "sgd"})", "--set", "exchange.dense_values=fp16"})
          .out,
      Contains("tiny trains with sgd: each worker sends 9664 B per step"));
  // 2 x 3 / 4 x 4 bytes x 4,832 parameters and 3 x 40 bytes, in a twentieth of 1 ms.
  CHECK_THAT(
      dgc.run({"plan", "tiny.json", "--set", R"(optimizer={"type": "sgd"})", "--bandwidth", "1Gbps", "--step-ms", "1"})
          .out,
      Contains("on a link of 4658 Mbps"));
  const Result info = dgc.run({"info"});
  REQUIRE(info.code == 0);
  CHECK_THAT(info.out, Contains("device   ") && Contains("cores   ") && Contains("threads"));
}

TEST_CASE("bench train measures a config") {
  const Program dgc;
  const Result result =
      dgc.run({"bench", "train", "tiny.json", "--json", "--warmup", "1", "--steps", "2", "--repeats", "3"});
  REQUIRE(result.code == 0);
  dgc.write("line.jsonl", result.out);
  const Row row = read_json_lines((dgc.folder() / "line.jsonl").string()).at(0);
  CHECK(row.integer("global_batch") == 16);
  CHECK(*row.number("samples_per_s") == Approx(16000 / *row.number("ms_per_step")));
  CHECK(row.number("exchange_hidden") == 0);
  CHECK(*row.number("ms_unrecorded") > 0);
  CHECK(row.find("overlap_ms") == nullptr);
}

TEST_CASE("bench data measures how quickly batches are made") {
  const Program dgc;
  const std::vector<std::string> words = {"bench", "data", "tiny.json", "--set", "data.threads=2", "--seconds", "0.01"};
  const Result text = dgc.run(words);
  INFO(text.err);
  REQUIRE(text.code == 0);
  CHECK_THAT(text.out, Contains("images/s by 2 loader threads") && Contains("in a second of processor time"));
  const Result json = dgc.run([&] {
    auto with_json = words;
    with_json.push_back("--json");
    return with_json;
  }());
  REQUIRE(json.code == 0);
  dgc.write("line.jsonl", json.out);
  const Row row = read_json_lines((dgc.folder() / "line.jsonl").string()).at(0);
  CHECK(row.text("samples") == "images");
  CHECK(row.integer("threads") == 2);
  CHECK(*row.number("seconds") >= 0.01);
  CHECK(*row.number("samples_per_s") == Approx(2 * *row.number("samples_per_s_per_thread")));
  const double images = *row.number("samples_per_s") * *row.number("seconds");
  CHECK(images == Approx(4 * std::round(images / 4)));  // whole batches
}

#ifndef DGC_SANITIZED  // 25.6 million parameters, five times
TEST_CASE("bench dgc measures the step of a model's size beside a copy") {
  const Program dgc;
  const Result result = dgc.run({"bench", "dgc", "--json", "--warmup", "1", "--steps", "1"});
  REQUIRE(result.code == 0);
  dgc.write("line.jsonl", result.out);
  const Row row = read_json_lines((dgc.folder() / "line.jsonl").string()).at(0);
  CHECK(row.integer("parameters") == 25557032);
  CHECK(*row.number("ms_per_step") > 0);
  CHECK(*row.number("apply_ms") > 0);
  CHECK(*row.number("apply_ms") != *row.number("copy_ms"));
  CHECK(*row.number("gb_per_s") == Approx(20 * 25557032 / 1e6 / *row.number("ms_per_step")));
  CHECK(*row.number("copy_gb_per_s") == Approx(20 * 25557032 / 1e6 / *row.number("copy_ms")));
}
#endif

TEST_CASE("eval shows texts from all over the set, and no count of what there is none of") {
  const Program dgc;
  const TinySpeech speech;
  train_on_speech(dgc, speech, "speech");
  const auto said = [&](const std::string& number) {
    const Result shown = dgc.run({"eval", "speech", "--show", number});
    CHECK(shown.code == 0);
    CHECK_THAT(shown.out, Contains("test word error rate") && !Contains("utterances not in the loss"));
    std::vector<std::string> all;
    std::istringstream lines(shown.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("said ")) all.push_back(line);
    }
    return all;
  };
  const std::vector<std::string> six = said("6");
  REQUIRE(six.size() == 6);
  CHECK(said("2") == std::vector<std::string>{six[1], six[4]});
  CHECK(said("9") == six);
}

TEST_CASE("what decodes speech is refused for a run of another kind") {
  const Program dgc;
  require_trained(dgc, {"tiny.json", "--out", "run", "--set", "training.epochs=1"});
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--beam", "4"}, std::vector<std::string>{"--show", "2"}}) {
    const Result refused = dgc.run({"eval", "run", option[0], option[1]});
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err,
               Contains("--beam, --lm and --show are for speech, and run is not the run of a speech model"));
  }
}

TEST_CASE("bench train measures what overlaps, and tells it") {
  const Program dgc;
  const auto bench = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "bench", "train",     "tiny.json", "--set", "exchange.overlap=on",      "--warmup", "1", "--steps",
        "2",     "--repeats", "3",         "--set", "exchange.transport=sparse"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = dgc.run(arguments);
    REQUIRE(result.code == 0);
    return result.out;
  };
  dgc.write("line.jsonl", bench({"--json"}));
  const Row row = read_json_lines((dgc.folder() / "line.jsonl").string()).at(0);
  CHECK(*row.number("overlap_ms") > 0);
  CHECK((*row.number("exchange_hidden") >= 0 && *row.number("exchange_hidden") <= 1));
  CHECK_THAT(bench({}), Contains("compression and exchange take") && Contains("% of it beside the backward pass"));
}

}  // namespace dgc
