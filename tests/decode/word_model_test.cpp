#include "decode/word_model.h"

#include <cmath>

#include "tests/decode/arpa_file.h"

namespace dgc {
namespace {

double log10_of(double natural) { return natural / std::log(10.0); }

TEST_CASE("word model: listed n-grams, back-off, and the unknown, by hand") {
  const TempFolder folder;
  const WordModel model(write_arpa(folder, kSmallModel));
  REQUIRE(model.order() == 3);
  const auto score = [&](std::vector<std::string> history, const std::string& word) {
    WordModel::History state;
    for (const std::string& w : history) state = model.after(state, w);
    return log10_of(model.score(state, word));
  };
  CHECK(score({}, "GO") == Approx(-0.6));
  CHECK(score({"<s>"}, "GO") == Approx(-0.2));
  CHECK(score({"<s>", "GO"}, "ON") == Approx(-0.1));                 // the trigram
  CHECK(score({"STOP", "GO"}, "ON") == Approx(-0.3));                // the bigram; STOP GO is no context
  CHECK(score({"<s>", "GO"}, "STOP") == Approx(-0.15 - 0.5 - 0.9));  // both back-offs, the unigram
  CHECK(score({"GO", "ON"}, "STOP") == Approx(-0.25 - 0.9));         // GO ON has no back-off of its own, ON has
  CHECK(score({"GO"}, "HALT") == Approx(-0.5 - 2.0));                // <unk>
  CHECK(score({"HALT"}, "GO") == Approx(-0.6));
  CHECK(log10_of(model.end_score(model.after(model.begin(), "GO"))) == Approx(-0.15 - 0.5 - 0.8));
  CHECK(model.after(model.after(model.begin(), "GO"), "ON").size() == 2);
}

TEST_CASE("word model: of words alone, without <unk> and </s>") {
  const TempFolder folder;
  const WordModel model(write_arpa(folder, "\\data\\\nngram  1=     1\n\n\\1-grams:\n-0.5\tGO\n\n\\end\\\n"));
  CHECK(model.begin().empty());
  CHECK(model.after(model.begin(), "GO").empty());
  CHECK(log10_of(model.score({}, "GO")) == Approx(-0.5));
  CHECK(model.score({}, "ON") == WordModel::kUnlisted);
  CHECK(model.end_score({}) == 0);
}

TEST_CASE("word model: what is listed as the beginning of a longer n-gram alone is not listed") {
  const TempFolder folder;
  const WordModel model(
      write_arpa(folder,
                 "\\data\\\nngram 1=2\nngram 2=1\nngram 3=1\n\n\\1-grams:\n-0.6 GO -0.5\n-0.9 STOP\n\n"
                 "\\2-grams:\n-0.3 GO ON\n\n\\3-grams:\n-0.1 GO STOP ON\n\n\\end\\\n"));
  const WordModel::History go = model.after({}, "GO");
  CHECK(log10_of(model.score(go, "STOP")) == Approx(-0.5 - 0.9));  // GO STOP is no bigram
  CHECK(log10_of(model.score(go, "ON")) == Approx(-0.3));
  CHECK(model.score({}, "ON") == WordModel::kUnlisted);
}

TEST_CASE("word model: <UNK> is as good as <unk>, and what follows the end is not read") {
  const TempFolder folder;
  const WordModel model(write_arpa(
      folder, "\\data\\\nngram 1=3\n\n\\1-grams:\n-99 <s>\n-0.5 GO\n-0.7 <UNK>\n\n\\end\\\nmade by hand\n\\end\\\n"));
  CHECK(log10_of(model.score({}, "STOP")) == Approx(-0.7));
  CHECK(model.begin().empty());  // a model of single words has no history
}

TEST_CASE("word model: what is wrong with a file is said, with its line") {
  const TempFolder folder;
  const auto [text, want] = GENERATE(table<std::string, std::string>({
      {"hello\n", "no line \\data\\"},
      {"\\data\\\nngram 1=1\n\\1-grams:\n-1 A\n", "truncated"},
      {"\\data\\\nngram 1=2\n\\1-grams:\n-1 A\n\\end\\\n", "it has 1 1-grams, but promises 2"},
      {"\\data\\\nngram 2=2\n", "line 2: a count like"},
      {"\\data\\\nngram 1=x\n", "line 2: a count like"},
      {"\\data\\\nngram 1=1\nngram 2=1\n\\1-grams:\n-1 A\n\\end\\\n", "line 6: an n-gram section is missing"},
      {"\\data\\\nngram 1=1\n\\2-grams:\n", "line 3: the n-gram sections must follow"},
      {"\\data\\\nngram 1=1\n\\1-grams:\n-1 A B C\n", "line 4: log10 of a probability, 1 word and"},
      {"\\data\\\nngram 1=1\n\\1-grams:\n0.1 A\n", "line 4: log10 of a probability, 1 word and"},
      {"\\data\\\nngram 1=1\n\\1-grams:\nnan A\n", "line 4: log10 of a probability, 1 word and"},
      {"\\data\\\nngram 1=1\n\\1-grams:\n-1 A inf\n", "line 4: log10 of a probability, 1 word and"},
      {"\\data\\\nngram 1=1\n\\1-grams:\n-1 A\n\\2-grams:\n-1 A A\n", "line 5: the n-gram sections must follow"},
  }));
  const std::string path = write_arpa(folder, text);
  const std::string error = user_error([&, path_ = path] { WordModel{path_}; });
  CHECK(error.starts_with(path + ": "));
  CHECK_THAT(error, Catch::Contains(want));
  CHECK_THAT(user_error([&] { WordModel{folder.path() + "/none"}; }), Catch::Contains("there is no such file"));
}

}  // namespace
}  // namespace dgc
