#include <catch.hpp>

#include "tests/config/example.h"

using namespace dgc;
using test::refusal;
using test::replaced;

namespace {

const std::string kText = R"({
  "model": {"type": "lstm_lm", "hidden": 200, "layers": 3},
  "data": {"type": "text", "train": "a.txt", "valid": "b.txt", "test": "c.txt", "bptt": 20},
  "training": {"epochs": 13, "batch_per_worker": 5},
  "optimizer": {"type": "sgd"},
  "learning_rate": {"type": "constant", "base": 20}
})";

std::string refused(const std::string& from, const std::string& to) {
  return refusal([&] { parse_config(replaced(kText, from, to), "lm.json"); });
}

}  // namespace

TEST_CASE("a language model's keys, and those that are left to it") {
  const Config c = parse_config(kText, "lm.json");
  CHECK(c.model.type == "lstm_lm");
  CHECK(c.model.lstm ==
        LstmLmOptions{.vocabulary = 0, .embedding = 200, .hidden = 200, .layers = 3, .dropout = 0, .tied = true});
  CHECK(c.data.text == TextDataOptions{.train = "a.txt",
                                       .valid = "b.txt",
                                       .test = "c.txt",
                                       .vocabulary = "",
                                       .vocabulary_size = {},
                                       .bptt = 20,
                                       .eval_streams = 10});
  CHECK(parse_config(resolved_json(c), "lm.json") == c);
  const Config untied =
      parse_config(kText, "lm.json", {"model.tied=false", "model.embedding=100", "model.dropout=0.5"});
  CHECK(untied.model.lstm.embedding == 100);
  CHECK(untied.model.lstm.dropout == 0.5);
}

TEST_CASE("the key layers is a number of a language model, and a list of the other type") {
  CHECK(refused("\"layers\": 3", R"("layers": [{"type": "relu"}])").find("model.layers: ") != std::string::npos);
  CHECK(refusal([] {
          parse_config(test::kExample, "x.json", {R"(model={"type": "layers", "layers": 3})"});
        }).find("model.layers: ") != std::string::npos);
}

TEST_CASE("text and language models go together, and what is not theirs is refused") {
  CHECK(refused(R"("type": "text", "train": "a.txt", "valid": "b.txt", "test": "c.txt", "bptt": 20)",
                R"("type": "synthetic")") ==
        "lm.json: data.type: model.type \"lstm_lm\" does not read it; use \"text\"");
  CHECK(refused(R"("type": "lstm_lm", "hidden": 200, "layers": 3)", R"("type": "resnet", "depth": 8, "classes": 10)") ==
        "lm.json: model.type: data.type \"text\" needs \"lstm_lm\"");
  CHECK(refused(R"("layers": 3)", R"("embedding": 100)") ==
        "lm.json: model.embedding: 100, but model.hidden is 200: with model.tied they must be equal; set model.tied to "
        "false");
  CHECK(refused(R"("bptt": 20)", R"("vocabulary": "v.txt", "vocabulary_size": 10)")
            .find("data.vocabulary_size: data.vocabulary says which words there are") != std::string::npos);
  CHECK(refused(R"("bptt": 20)", R"("threads": 2)").find("data.threads: belongs to") != std::string::npos);
  CHECK(refused(R"("bptt": 20)", R"("augment": {"flip": true})").find("data.augment") != std::string::npos);
  CHECK(refused(R"("valid": "b.txt", )", "").find("data.valid: missing") != std::string::npos);
  CHECK(refused(R"("hidden": 200, )", "").find("model.hidden: missing") != std::string::npos);
}
