#include "config/config.h"

#include <algorithm>
#include <catch.hpp>

#include "config/data_types.h"
#include "config/keys.h"
#include "config/synonyms.h"
#include "tests/config/example.h"

using namespace dgc;
using test::kExample;
using test::refusal;
using test::replaced;

namespace {

std::string said(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return refusal([&] { parse_config(text, "run.json", overrides); });
}

std::string said_of(const std::string& from, const std::string& to) { return said(replaced(kExample, from, to)); }

}  // namespace

TEST_CASE("a config says what was written, and defaults say the rest", "[config]") {
  const Config c = parse_config(kExample, "run.json");
  CHECK(c.name == "example");
  CHECK(c.seed == 1);
  CHECK(c.output == "runs/example");
  CHECK(c.model.type == "resnet");
  CHECK(c.model.resnet.stem == ResNetOptions::Stem::cifar);
  CHECK(c.model.resnet.shortcut == ResNetOptions::Shortcut::identity_pad);
  CHECK(c.model.resnet.width == 16);
  CHECK(c.data.images.augment.pad_crop == 4);
  CHECK(c.training.max_steps == std::nullopt);
  CHECK(c.optimizer.type == OptimizerType::dgc);
  CHECK(c.optimizer.sparsity.warmup.epochs == 4);
  CHECK(c.optimizer.sparsity.warmup.sparsity == std::vector{0.75, 0.9375});
  CHECK(c.optimizer.dgc.factor_masking);
  CHECK(c.learning_rate.milestones == std::vector<double>{15, 22});
  CHECK(c.optimizer.dgc.wire.values == WireValues::fp32);
  CHECK(c.checkpoint.keep == 2);
}

TEST_CASE("a run without a name is called as its file", "[config]") {
  const std::string text = replaced(kExample, "\"name\": \"example\",", "");
  CHECK(parse_config(text, "configs/my run.json").name == "my_run");
  CHECK(parse_config(text, "configs/my run.json").output == "runs/my_run");
  CHECK(parse_config(text, "").name == "run");
  CHECK(parse_config(text, "-x.json").name == "run-x");
  CHECK(parse_config(text, "a.b_c+d-e=f.json").name == "a.b_c+d-e_f");
  CHECK(parse_config(text, std::string(200, 'x') + ".json").name == std::string(100, 'x'));
}

TEST_CASE("unknown keys are refused with the nearest name", "[config]") {
  CHECK(said_of("\"momentum\"", "\"momentun\"") ==
        "run.json: optimizer.momentun: unknown key; did you mean \"momentum\"?");
  CHECK(said_of("\"epochs\": 30", "\"epcohs\": 30") ==
        "run.json: training.epcohs: unknown key; did you mean \"epochs\"?");
  CHECK(said_of("\"optimizer\"", "\"optimiser\"") == "run.json: optimiser: unknown key; did you mean \"optimizer\"?");
  CHECK(said_of("\"name\"", "\"momentum\": 0.9, \"name\"") ==
        "run.json: momentum: unknown key; did you mean \"optimizer.momentum\"?");
  CHECK(said_of("\"name\"", "\"optimizer.momentum\": 0.9, \"name\"") ==
        "run.json: optimizer.momentum: a key cannot have a dot; put objects inside one another");
  CHECK(said_of("\"epochs\": 4, ", "\"xylophone\": 4, ") ==
        "run.json: optimizer.warmup.xylophone: unknown key; here there are \"epochs\", \"sparsity\"");
}

TEST_CASE("repeated keys are refused, at any depth", "[config]") {
  CHECK(said_of("\"momentum\"", "\"sparsity\": 0.5, \"momentum\"") ==
        "run.json: optimizer.sparsity: this key is given twice");
  CHECK(said_of("\"name\"", "\"model\": {}, \"name\"") == "run.json: model: this key is given twice");
}

TEST_CASE("syntax errors come with line and column", "[config]") {
  CHECK_THAT(said("{\n  \"seed\": 1,\n}"), Catch::StartsWith("run.json: line 3, column 1: not valid JSON: "));
  CHECK_THAT(said("{\"seed\": tru}"), Catch::StartsWith("run.json: line 1, column 13: not valid JSON: "));
  CHECK(said(" \n") == "run.json: it is empty");
  CHECK_THAT(said("{} x"), Catch::StartsWith("run.json: line 1, column 4: not valid JSON: "));
  CHECK(said("{\"seed\": 1e999}") == "run.json: line 1, column 14: not valid JSON: number overflow parsing '1e999'");
  CHECK(said(kExample + std::string("\n\0 behind", 9)) == "run.json: line 11, column 1: not valid JSON: a NUL byte");
  CHECK(said("[]") == "run.json: must be an object, not an array");
  CHECK_THAT(said(std::string(100000, '[')), Catch::EndsWith("nested too deeply"));
}

TEST_CASE("what other notations allow and JSON does not is named", "[config]") {
  const auto [text, place, rule] = GENERATE(table<std::string, std::string, std::string>({
      {"{\"seed\": 1, // the first\n}", "line 1, column 13", "; JSON has no comments"},
      {"# run\n{}", "line 1, column 1", "; JSON has no comments"},
      {"{} /* run */", "line 1, column 4", "; JSON has no comments"},
      {"{'seed': 1}", "line 1, column 2", "; strings stand in double quotes"},
      {"{\"seed\": None}", "line 1, column 10", "; true, false and null are written in small letters"},
      {"{\"seed\":True}", "line 1, column 9", "; true, false and null are written in small letters"},
      {"{\"seed\": [FALSE]}", "line 1, column 11", "; true, false and null are written in small letters"},
      {"{\"seed\": NaN}", "line 1, column 10", "; JSON has no NaN"},
      {"{\"seed\": 1,\n}", "line 2, column 1", "'}'; expected string literal; no comma before it"},
      {"{\"seed\": [1, ]}", "line 1, column 14", "; no comma before it"},
      // and no rule where another mistake ends at such a byte
      {"{\"name\": /data/cifar}", "line 1, column 10", "last read: '\"name\": /'"},
      {"{\"seed\": 1/2}", "line 1, column 11", "expected '}'"},
      {"{\"name\": Tiny}", "line 1, column 10", "last read: '\"name\": T'"},
      {"{\"seed\": n/a}", "line 1, column 11", "last read: '\"seed\": n/'"},
      {"{\"name\": \"\\'\"}", "line 1, column 12", "last read: '\"\\''"},
      {"{\"seed\": [1}", "line 1, column 12", "expected ']'"},
  }));
  CAPTURE(text);
  CHECK_THAT(said(text), Catch::StartsWith("run.json: " + place + ": not valid JSON: ") && Catch::EndsWith(rule));
}

TEST_CASE("values of the wrong type are refused", "[config]") {
  CHECK(said_of("\"epochs\": 30", "\"epochs\": \"30\"") ==
        "run.json: training.epochs: it must be an integer, not \"30\"");
  CHECK(said_of("\"epochs\": 30", "\"epochs\": 30.5") == "run.json: training.epochs: it must be an integer, not 30.5");
  CHECK(said_of("\"epochs\": 30", "\"epochs\": 3e1").empty());
  CHECK(said_of("\"max_steps\": null", "\"max_steps\": true") ==
        "run.json: training.max_steps: it must be an integer or null, not true");
  CHECK(said_of("\"flip\": true", "\"flip\": 1") == "run.json: data.augment.flip: it must be true or false, not 1");
  CHECK(said_of("0.75, ", "null, ") == "run.json: optimizer.warmup.sparsity[0]: it must be a number, not null");
  CHECK(said_of("[15, 22]", "15") == "run.json: learning_rate.milestones: it must be a list of numbers, not 15");
  CHECK(said_of("{\"epochs\": 4, \"sparsity\": [0.75, 0.9375]}", "4") ==
        "run.json: optimizer.warmup: must be an object, not a number");
  CHECK(said_of("\"dgc\"", "\"dcg\"") ==
        "run.json: optimizer.type: it must be one of \"sgd\", \"dgc\", not \"dcg\"; did you mean \"dgc\"?");
  CHECK(said_of("\"name\": \"example\"", "\"name\": \"a/b\"") ==
        "run.json: name: \"a/b\" does not match [A-Za-z0-9][A-Za-z0-9._+-]*; letters, digits and . _ + -, and a letter "
        "or "
        "digit first");
}

TEST_CASE("values out of range are refused, their bounds included where they should be", "[config]") {
  CHECK(said_of("0.999", "1.0") ==
        "run.json: optimizer.sparsity: 1.0 is out of range; it must be at least 0 and less than 1");
  CHECK(said_of("0.999", "0").empty());
  CHECK(said_of("0.9375", "1.5") ==
        "run.json: optimizer.warmup.sparsity[1]: 1.5 is out of range; it must be at least 0 and less than 1");
  CHECK(said_of("\"batch_per_worker\": 32", "\"batch_per_worker\": 0") ==
        "run.json: training.batch_per_worker: 0 is out of range; it must be at least 1 and at most 1000000");
  CHECK(said_of("\"base\": 0.1", "\"base\": 0") ==
        "run.json: learning_rate.base: 0 is out of range; it must be more than 0 and at most 1000000");
  CHECK(said_of("\"max_steps\": null", "\"max_steps\": 18446744073709551615") != "");
  CHECK(said_of("[0.75, 0.9375]", "[]") == "run.json: optimizer.warmup.sparsity: it must have at least 1 entry");
}

TEST_CASE("required keys must be there", "[config]") {
  CHECK(said_of("\"depth\": 20, ", "") == "run.json: model.depth: missing; it must be an integer");
  CHECK(said_of("\"milestones\": [15, 22], ", "") ==
        "run.json: learning_rate.milestones: missing; it must be a list of numbers");
  CHECK_THAT(said("{}"), Catch::StartsWith("run.json: model.type: missing; it must be one of "));
  CHECK_THAT(said_of("\"model\"", "\"base\""), Catch::StartsWith("run.json: base: unknown key; "));
}

TEST_CASE("a key by the name that PyTorch has for it is refused with ours", "[config]") {
  const std::string meant = "unknown key; did you mean ";
  CHECK(said_of("\"momentum\"", "\"lr\"") == "run.json: optimizer.lr: " + meant + "\"learning_rate.base\"?");
  CHECK(said_of("\"momentum\"", "\"learning_rate\"") ==
        "run.json: optimizer.learning_rate: " + meant + "\"learning_rate.base\"?");
  CHECK(said_of("\"batch_per_worker\"", "\"batch_size\"") ==
        "run.json: training.batch_size: " + meant + "\"training.batch_per_worker\"?");
  CHECK(said_of("\"name\"", "\"epochs\": 3, \"name\"") == "run.json: epochs: " + meant + "\"training.epochs\"?");
  CHECK(said_of("\"name\"", "\"num_workers\": 4, \"name\"") == "run.json: num_workers: " + meant + "\"data.threads\"?");
  CHECK(said_of("\"momentum\"", "\"grad_clip\": 1, \"momentum\"") ==
        "run.json: optimizer.grad_clip: " + meant + "\"optimizer.clip_norm\"?");
  CHECK(said_of("\"base\"", "\"warmup\": 5, \"base\"") ==
        "run.json: learning_rate.warmup: " + meant + "\"learning_rate.warmup_epochs\"?");
  CHECK(said_of("\"name\"", "\"warmup\": 5, \"name\"") ==
        "run.json: warmup: " + meant + "\"optimizer.warmup.epochs\"?");
  CHECK(said_of("\"name\"", "\"workers\": 4, \"name\"") == "run.json: workers: " + meant + "\"workers_per_rank\"?");
  CHECK(said_of("\"augment\"", "\"workers\": 4, \"augment\"") ==
        "run.json: data.workers: " + meant + "\"data.threads\"?");
  CHECK(said_of("\"name\"", "\"threads_per_rank\": 4, \"name\"") ==
        "run.json: threads_per_rank: " + meant + "\"threads\"?");
  CHECK(said_of("\"momentum\"", "\"name\": \"dgc\", \"momentum\"") ==
        "run.json: optimizer.name: " + meant + "\"optimizer.type\"?");
  CHECK(said_of("\"momentum\"", "\"kernel_size\": 3, \"momentum\"").find("did you mean") == std::string::npos);
  CHECK(said_of("\"name\"", "\"device\": \"cuda\", \"name\"") ==
        "run.json: device: \"cuda\" does not match auto|cpu|cuda:[0-9]{1,3}; a GPU has a number: cuda:0");
}

TEST_CASE("a synonym stands for a key that there is, and is none itself", "[config]") {
  for (const Synonym& synonym : synonyms()) {
    CAPTURE(synonym.word, synonym.key);
    const auto is_meant = [&](const Key& key) { return key.path == synonym.key; };
    const auto is_taken = [&](const Key& key) { return key.path == synonym.word; };
    CHECK((std::ranges::any_of(config_keys(), is_meant) || std::ranges::any_of(layer_keys(), is_meant)));
    CHECK(std::ranges::none_of(config_keys(), is_taken));
    CHECK(std::ranges::none_of(layer_keys(), is_taken));
  }
}

TEST_CASE("a key is found by its last name, in a command line's spelling too", "[config]") {
  CHECK(key_called("epochs") == "training.epochs");
  CHECK(key_called("max-steps") == "training.max_steps");
  CHECK(key_called("learning-rate") == "learning_rate.base");
  CHECK(key_called("momentum") == "optimizer.momentum");
  CHECK(key_called("warmup") == "optimizer.warmup.epochs");
  CHECK(key_called("workers") == "workers_per_rank");
  CHECK(key_called("hidden") == "model.hidden");  // of several types of models
  CHECK(key_called("seed") == "seed");
  CHECK(key_called("threads") == "threads");
  CHECK(key_called("every-steps").empty());  // that of checkpoints, or of exchanges
  CHECK(key_called("kernel_size").empty());
  CHECK(key_called("frob").empty());
}

TEST_CASE("keys of another type are refused, not ignored", "[config]") {
  CHECK(said_of("\"dgc\"", "\"sgd\"") ==
        "run.json: optimizer.sparsity: belongs to optimizer.type \"dgc\", and this is \"sgd\"; leave it out");
  CHECK(
      said(kExample, {"optimizer.type=sgd"}) ==
      "run.json: optimizer.sparsity: belongs to optimizer.type \"dgc\", and this is \"sgd\"; leave it out, or replace "
      "the whole section: --set 'optimizer={\"type\": \"sgd\", ...}'");
  CHECK_NOTHROW(parse_config(kExample, "run.json", {R"(optimizer={"type": "sgd", "momentum": 0.9})"}));
  CHECK(said_of("\"sparsity\": 0.999,", "\"sparsity\": 0.999, \"depth\": 3,") ==
        "run.json: optimizer.depth: unknown key; did you mean \"model.depth\"?");
  CHECK(said_of("\"momentum\"", "\"warmup_epochs\": 3, \"momentum\"") ==
        "run.json: optimizer.warmup_epochs: unknown key; did you mean \"optimizer.warmup.epochs\"?");
  CHECK(said_of("\"resnet\"", "\"alexnet\"") ==
        "run.json: model.depth: belongs to model.type \"resnet\", and this is \"alexnet\"; leave it out");
  CHECK(said_of("\"factor\": 0.1", "\"patience\": 2") ==
        "run.json: learning_rate.patience: belongs to learning_rate.type \"plateau\", and this is \"step\"; leave it "
        "out");
}

TEST_CASE("a key that is gone is refused, but a run that still has it is read", "[config]") {
  const std::string old = replaced(kExample, "\"name\"", "\"deterministic\": false, \"name\"");
  CHECK(said(old) == "run.json: deterministic: there is no such key any more (every run is); leave it out");
  CHECK(said(kExample, {"deterministic=true"}) ==
        "--set deterministic=true: deterministic: there is no such key any more (every run is); leave it out");
  const test::TemporaryFile file(old);
  CHECK(load_run_config(file.path()) == parse_config(kExample, "run.json"));
  CHECK(load_run_config(file.path(), {"seed=2"}).seed == 2);
}

TEST_CASE("a key without a name is refused", "[config]") {
  CHECK(said_of("\"name\"", "\"\": 3, \"name\"") == "run.json: a key cannot be empty");
  CHECK(said_of("\"momentum\"", "\"\": 3, \"momentum\"") == "run.json: optimizer: a key cannot be empty");
}

TEST_CASE("a file that cannot be read is named", "[config]") {
  CHECK(refusal([] { load_config("/dev/zero"); }) == "/dev/zero: longer than the 16 MiB that such a file may have");
  CHECK(refusal([] { load_config("no/such/file.json"); }) ==
        "no/such/file.json: cannot open this file: No such file or directory");
  const test::TemporaryFile file(kExample);
  CHECK(refusal([&] { load_config(file.path() + "/x"); }) ==
        file.path() + "/x: cannot open this file: Not a directory");
  CHECK(load_config(file.path()).name == "example");
  CHECK(refusal([] { load_config("."); }) ==
        ".: this is a folder, and a config file is needed; of a run, give ./config.json");
  const test::TemporaryFile with_nul(R"({"a\u0000b": 1})");
  CHECK_THAT(refusal([&] { load_config(with_nul.path()); }), Catch::EndsWith(": a\\x00b: a key has a NUL"));
}

TEST_CASE("each kind of data set has what its kind of data needs", "[config]") {
  for (const DataType& type : data_types()) {
    CAPTURE(type.name);
    const bool images = type.kind == DataKind::images;
    CHECK((type.open != nullptr) == images);
    CHECK((type.small || type.sample != nullptr) == images);
    CHECK((type.list != nullptr) == (type.kind == DataKind::speech));
  }
}
