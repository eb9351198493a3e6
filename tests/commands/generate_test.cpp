#include <catch.hpp>
#include <sstream>

#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

}  // namespace

TEST_CASE("generate goes on from a prompt, line by line, and always the same way") {
  const Program dgc;
  write_language_model(dgc);
  const Result trained = dgc.run({"train", "lm.json", "--out", "run"});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  CHECK_THAT(trained.out, Contains("perplexity"));

  const std::vector<std::string> command = {"generate", "run", "--prompt", "the cat", "--words", "25"};
  const Result said = dgc.run(command);
  CAPTURE(said.out, said.err);
  REQUIRE(said.code == 0);
  CHECK_THAT(said.out, Catch::StartsWith("the cat") && Catch::EndsWith("\n"));
  CHECK_THAT(said.out, !Contains("<eos>") && !Contains("<unk>"));
  CHECK(dgc.run(command).out == said.out);
  std::istringstream words(said.out);
  for (std::string word; words >> word;) CHECK_THAT(word, Catch::Matches("the|cat|sat|on|a|mat"));

  const Result in_bf16 = dgc.run({"generate", "run", "--prompt", "the", "--set", "precision=bf16"});
  CHECK(in_bf16.code == 2);
  CHECK_THAT(in_bf16.err, Contains("error: precision: a trained model computes in fp32"));

  std::vector<std::string> as_json = command;
  as_json.emplace_back("--json");
  const Row object = read_json_line(dgc.run(as_json).out, "--json");
  CHECK(object.text("prompt") == "the cat");
  // A line that has not ended is ended on a terminal.
  CHECK_THAT(said.out, Catch::StartsWith(object.text("text").value()) && Catch::EndsWith("\n"));
}

TEST_CASE("generate and train say what is wrong with a text or a run, exit code 2") {
  const Program dgc;
  write_language_model(dgc);
  const Result missing = dgc.run({"train", "lm.json", "--set", "data.valid=nowhere.txt"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, Contains("nowhere.txt") && Contains("data.valid") && Contains("there is no such file"));

  dgc.write("latin1.txt", "caf\xe9 au lait\n");
  const Result latin1 = dgc.run({"train", "lm.json", "--set", "data.train=latin1.txt"});
  CHECK(latin1.code == 2);
  CHECK_THAT(latin1.err, Contains("latin1.txt: line 1 is not UTF-8") && Contains("iconv"));

  const Result no_run = dgc.run({"generate", "nowhere"});
  CHECK(no_run.code == 2);
  CHECK_THAT(no_run.err, Contains("nowhere is not a run directory"));
  const Result no_words = dgc.run({"generate", "nowhere", "--words", "-1"});
  CHECK(no_words.code == 2);
  CHECK_THAT(no_words.err, Contains("--words"));
}

}  // namespace dgc
