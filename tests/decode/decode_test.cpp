#include <catch.hpp>
#include <cmath>
#include <map>

#include "decode/beam.h"
#include "decode/greedy.h"
#include "tensor/rng.h"
#include "tests/decode/arpa_file.h"

namespace dgc {
namespace {

using Labels = std::vector<int32_t>;

Labels collapse(const Labels& alignment) {
  Labels out;
  int32_t last = kBlank;
  for (const int32_t c : alignment) {
    if (c != last && c != kBlank) out.push_back(c);
    last = c;
  }
  return out;
}

struct Case {
  int64_t frames, classes;
  std::vector<float> log_probabilities;

  FrameScores scores() const { return {log_probabilities.data(), frames, classes, classes}; }
};

// Rows of random logits through a softmax; sharper ones are more certain.
Case random_case(int64_t frames, int64_t classes, uint64_t seed, float sharpness = 2) {
  Case out{frames, classes, {}};
  const Philox rng(seed, 0);
  for (int64_t t = 0; t < frames; ++t) {
    std::vector<double> row;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      row.push_back(sharpness * rng.normal(static_cast<uint64_t>(t * classes + c)));
      sum += std::exp(row.back());
    }
    for (const double x : row) out.log_probabilities.push_back(static_cast<float>(x - std::log(sum)));
  }
  return out;
}

// Each frame is certain of one class, and leaves `rest` to the others in equal parts.
Case certain_case(const Labels& best, int64_t classes, double rest) {
  Case out{std::ssize(best), classes, {}};
  for (const int32_t b : best) {
    for (int32_t c = 0; c < classes; ++c) {
      const double p = c == b ? 1 - rest : rest / static_cast<double>(classes - 1);
      out.log_probabilities.push_back(static_cast<float>(std::log(p)));
    }
  }
  return out;
}

// ln P of every text, by adding up all classes^frames alignments.
std::map<Labels, double> all_texts(const Case& c) {
  std::map<Labels, double> probability;
  Labels alignment(static_cast<size_t>(c.frames), 0);
  while (true) {
    double p = 0;
    for (int64_t t = 0; t < c.frames; ++t) {
      p += c.log_probabilities[static_cast<size_t>(t * c.classes + alignment[static_cast<size_t>(t)])];
    }
    probability[collapse(alignment)] += std::exp(p);
    size_t t = 0;
    while (t < alignment.size() && ++alignment[t] == c.classes) alignment[t++] = 0;
    if (t == alignment.size()) break;
  }
  for (auto& [labels, p] : probability) p = std::log(p);
  return probability;
}

TEST_CASE("greedy: repeats merge, blanks part and vanish") {
  const auto decode = [](const Labels& best) {
    std::vector<float> logits;
    for (const int32_t b : best) {
      for (int32_t c = 0; c < 4; ++c) logits.push_back(c == b ? 3.f : -1.f);
    }
    return greedy_decode({logits.data(), std::ssize(best), 4, 4});
  };
  CHECK(decode({}) == Labels{});
  CHECK(decode({0, 0}) == Labels{});
  CHECK(decode({1, 1, 2, 2, 2, 3}) == Labels{1, 2, 3});
  CHECK(decode({0, 1, 0, 1, 1, 0, 0, 3}) == Labels{1, 1, 3});
}

TEST_CASE("greedy: an utterance within a batch") {
  // [T, B, C] = [2, 2, 2]: utterance 0 says 1 then blank, utterance 1 blank then 1.
  const std::vector<float> all = {0, 1, 1, 0, 1, 0, 0, 1};
  CHECK(greedy_decode({all.data(), 2, 2, 4}) == Labels{1});
  CHECK(greedy_decode({all.data() + 2, 2, 2, 4}) == Labels{1});
  CHECK(greedy_decode({all.data() + 2, 1, 2, 4}) == Labels{});
}

TEST_CASE("beam: as wide as there are prefixes, it finds the likeliest text of all") {
  const Alphabet alphabet("AB");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Case c = random_case(6, 3, seed);
    const auto truth = all_texts(c);
    const auto best =
        std::max_element(truth.begin(), truth.end(), [](auto& a, auto& b) { return a.second < b.second; });
    BeamOptions options;
    options.width = 1000;
    options.class_margin = 1e9;
    const BeamResult got = beam_decode(c.scores(), alphabet, options);
    CAPTURE(seed);
    CHECK(got.labels == best->first);
    CHECK(got.score == Approx(best->second).margin(1e-5));
  }
}

TEST_CASE("beam: where greedy is wrong") {
  // Graves' example: twice blank 0.6, A 0.4. Blank blank is the likeliest alignment (0.36), but A the likeliest text
  // (0.64).
  Case c{2, 2, {}};
  for (int t = 0; t < 2; ++t) {
    c.log_probabilities.push_back(std::log(0.6f));
    c.log_probabilities.push_back(std::log(0.4f));
  }
  CHECK(greedy_decode(c.scores()) == Labels{});
  const BeamResult got = beam_decode(c.scores(), Alphabet("A"), {});
  CHECK(got.labels == Labels{1});
  CHECK(got.score == Approx(std::log(0.64)));
}

TEST_CASE("beam: a certain network's text, with any width") {
  // One alignment has 0.9999^40 > 0.99 of the probability, so its text has more than all others together.
  Labels best;
  for (uint64_t t = 0; t < 40; ++t) best.push_back(static_cast<int32_t>(Philox(77, 0).below(t, 5)));
  const Case c = certain_case(best, 5, 0.0001);
  BeamOptions options;
  options.width = GENERATE(1, 4, 64);
  CHECK(beam_decode(c.scores(), Alphabet("ABC "), options).labels == greedy_decode(c.scores()));
  CHECK(beam_decode({nullptr, 0, 5, 5}, Alphabet("ABC "), options).labels.empty());
}

TEST_CASE("beam: of classes far below a frame's best, the blank alone is tried") {
  // ln(0.8 / 0.2) is 1.39. A is heard in both frames or in one of them.
  const auto score = [](const Labels& best, double margin) {
    BeamOptions options;
    options.class_margin = margin;
    const BeamResult got = beam_decode(certain_case(best, 2, 0.2).scores(), Alphabet("A"), options);
    CHECK(got.labels == Labels{1});
    return got.score;
  };
  CHECK(score({1, 0}, 1) == Approx(std::log(0.8 * 0.8)));
  CHECK(score({1, 0}, 2) == Approx(std::log(0.8 * 0.8 + 0.8 * 0.2 + 0.2 * 0.2)));
  CHECK(score({1, 1}, 1) == Approx(std::log(0.8 * 0.8 + 2 * 0.8 * 0.2)));
}

TEST_CASE("beam: a certain space where no word has begun loses nothing but itself") {
  const TempFolder folder;
  const WordModel words(
      write_arpa(folder, "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-1.0 </s>\n-0.5 A\n-0.9 B\n\n\\end\\\n"));
  constexpr int32_t kA = 1, kB = 2, kSpace = 3;
  // A blank takes the place of a space: of the only one, or of one of the two.
  const auto [heard, text, places] = GENERATE(table<Labels, std::string, int>({
      {{kSpace, kA, kSpace, kB}, " A B", 1},
      {{kA, kSpace, kBlank, kSpace, kB}, "A  B", 2},
  }));
  const Alphabet alphabet("AB ");
  const Case c = certain_case(heard, 4, 1e-6);
  REQUIRE(alphabet.text(greedy_decode(c.scores())) == text);
  BeamOptions options;
  options.words = &words;
  const BeamResult got = beam_decode(c.scores(), alphabet, options);
  CHECK(alphabet.text(got.labels) == "A B");
  CHECK(got.score == Approx(std::log(places * 1e-6 / 3) - 2.4 * std::log(10)).margin(1e-3));
}

TEST_CASE("beam: with a word model, the best of all texts by the sum of both") {
  const TempFolder folder;
  const WordModel model(write_arpa(folder,
                                   "\\data\\\nngram 1=6\nngram 2=2\n\n\\1-grams:\n-99 <s> -0.3\n-1.0 </s>\n-3 <unk>\n"
                                   "-0.5 A -0.2\n-0.9 B\n-0.7 BA\n\n\\2-grams:\n-0.1 <s> BA\n-0.2 A B\n\n\\end\\\n"));
  const Alphabet alphabet("AB ");
  const auto word_score = [&](const Labels& labels, const BeamOptions& o) {
    WordModel::History history = model.begin();
    double score = 0;
    std::string text = alphabet.text(labels), word;
    if (!text.empty() && text.back() != ' ') text += ' ';
    for (const char c : text) {
      if (c != ' ') {
        word += c;
        continue;
      }
      score += o.word_weight * model.score(history, word) + o.word_bonus;
      history = model.after(history, word);
      word.clear();
    }
    return score + o.word_weight * model.end_score(history);
  };
  const auto is_tried = [&](const Labels& labels) {
    const std::string text = alphabet.text(labels);
    return !text.starts_with(' ') && text.find("  ") == std::string::npos;
  };
  int differs = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Case c = random_case(6, 4, seed, 1);
    BeamOptions options;
    options.width = 5000;
    options.class_margin = 1e9;
    options.words = &model;
    options.word_weight = 0.7;
    options.word_bonus = 1.1;
    Labels best;
    double most = -1e300;
    for (const auto& [labels, log_probability] : all_texts(c)) {
      const double score = log_probability + word_score(labels, options);
      if (!is_tried(labels) || score <= most) continue;
      most = score;
      best = labels;
    }
    const BeamResult got = beam_decode(c.scores(), alphabet, options);
    CAPTURE(seed, alphabet.text(got.labels), alphabet.text(best));
    CHECK(got.labels == best);
    CHECK(got.score == Approx(most).margin(1e-5));
    options.words = nullptr;
    differs += beam_decode(c.scores(), alphabet, options).labels != best;
  }
  CHECK(differs > 0);  // the model has a say
}

TEST_CASE("beam: a narrow one keeps the prefixes whose words are likely") {
  // A is heard rather than B, and B is the likelier word. Which of them comes last is left to the words too.
  const TempFolder folder;
  const WordModel words(write_arpa(folder, "\\data\\\nngram 1=2\n\n\\1-grams:\n-2 A\n-0.1 B\n\n\\end\\\n"));
  Case c{3, 4, {}};
  const auto add = [&](std::initializer_list<float> row) {
    for (const float p : row) c.log_probabilities.push_back(std::log(p));
  };
  add({0.01f, 0.54f, 0.44f, 0.01f});
  add({0.01f, 0.01f, 0.01f, 0.97f});
  add({0.01f, 0.49f, 0.49f, 0.01f});
  const Alphabet alphabet("AB ");
  BeamOptions options{.width = 2};
  CHECK(alphabet.text(beam_decode(c.scores(), alphabet, options).labels).starts_with("A "));
  options.words = &words;
  CHECK(alphabet.text(beam_decode(c.scores(), alphabet, options).labels) == "B B");
}

TEST_CASE("beam: no bonus for words makes words of nothing") {
  const TempFolder folder;
  const WordModel words(write_arpa(folder, "\\data\\\nngram 1=2\n\n\\1-grams:\n-0.5 A\n-0.5 <unk>\n\n\\end\\\n"));
  const Alphabet alphabet("A ");
  BeamOptions options;
  options.words = &words;
  options.word_bonus = 20;
  const Case c = certain_case({2, 0, 2, 0, 1, 0, 2, 0, 2}, 3, 0.01);
  const std::string text = alphabet.text(beam_decode(c.scores(), alphabet, options).labels);
  CHECK_FALSE(text.starts_with(' '));
  CHECK(text.find("  ") == std::string::npos);
}

}  // namespace
}  // namespace dgc
