#include "data/text/text.h"

#include "tensor/utf8.h"
#include "tests/data/fixtures.h"

// Every truth here is written down by hand.
namespace dgc {
namespace {

using Strings = std::vector<std::string>;
using Words = std::vector<int32_t>;

struct TextFolder {
  TempFolder folder;
  TextFile file(const std::string& text, const std::string& key = "data.train") const {
    return {folder.write("text.txt", bytes_of_text(text)), key};
  }
};

Strings words_of(const TextFile& file) {
  Strings words;
  read_words(file, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

// The 23 words 0 ... 22 on one line, <eos> counted: numbers are their own names.
Vocabulary numbers() {
  Strings words = {"<eos>", "<unk>"};
  for (int i = 0; i < 30; ++i) words.push_back("w" + std::to_string(i));
  return {words, "numbers"};
}

// words w0 ... w(n-2) and an <eos>; word i has the number i + 2
std::string counting_text(int n) {
  std::string text;
  for (int i = 0; i < n - 1; ++i) text += "w" + std::to_string(i) + " ";
  return text + "\n";
}

WorkerBatches workers(int64_t count, int64_t rows, int first = 0, int local = 1, int64_t start = 0) {
  return {{.samples = 0, .workers = count, .batch_per_worker = rows, .seed = 1}, first, local, start};
}

}  // namespace

TEST_CASE("text: what is none, and has no end, is refused at its first piece") {
  CHECK(user_error([] {
          words_of({"/dev/zero", "data.test"});
        }) == "/dev/zero: it has a NUL byte, and so is no text; set data.test to a text with one sentence a line");
}

TEST_CASE("text: words as Penn Treebank and WikiText have them, an <eos> after every line") {
  const TextFolder f;
  CHECK(words_of(f.file(" no it was n't <unk> \n N years\tago\r\n")) ==
        Strings{"no", "it", "was", "n't", "<unk>", "<eos>", "N", "years", "ago", "<eos>"});
  CHECK(words_of(f.file(" \n = Title = \n \nlast")) ==
        Strings{"<eos>", "=", "Title", "=", "<eos>", "<eos>", "last", "<eos>"});
  CHECK(words_of(f.file("\xEF\xBB\xBF"
                        "caf\xC3\xA9\n")) == Strings{"caf\xC3\xA9", "<eos>"});
  const TempFolder packed;
  CHECK(words_of({packed.write("text.gz", gzip(bytes_of_text("a b\n"))), "data.train"}) == Strings{"a", "b", "<eos>"});
}

TEST_CASE("text: a file that is missing, empty or not UTF-8 is named, with what to do") {
  const TextFolder f;
  const auto error = [&](const std::string& text) { return user_error([&] { words_of(f.file(text)); }); };
  CHECK(error("") == f.folder.path() +
                         "/text.txt: there are no words in it; set data.train to a text with one sentence "
                         "a line");
  CHECK_THAT(error(" \n\t\n"), Catch::Contains("there are no words in it"));
  CHECK(error("one\ntwo\nna\xEFve\n") == f.folder.path() +
                                             "/text.txt: line 3 is not UTF-8 (byte 0xef); convert it (iconv -f LATIN1 "
                                             "-t UTF-8) and set data.train to the result");
  CHECK_THAT(user_error([&] {
               words_of({f.folder.path() + "/none.txt", "data.valid"});
             }),
             Catch::Contains("/none.txt: there is no such file; set data.valid to"));
}

TEST_CASE("text: a vocabulary has one word a line, and a run's own is no key's") {
  const TextFolder f;
  const std::string none = f.folder.path() + "/none.txt";
  const auto error = [](const TextFile& file) { return user_error([&] { read_vocabulary(file); }); };
  CHECK(error({none, "data.vocabulary"}) ==
        none + ": there is no such file; set data.vocabulary to a text with one word a line (see data/README.md)");
  CHECK(error({none, ""}) == none + ": there is no such file; it is the run's own; put it back as it was");
  const auto of_run = [&](const std::string& text) { return error(f.file(text, "")); };
  CHECK_THAT(error(f.file("", "data.vocabulary")),
             Catch::EndsWith("set data.vocabulary to a text with one word a line"));
  CHECK_THAT(of_run(""), Catch::EndsWith("there are no words in it; it is the run's own; put it back as it was"));
  CHECK_THAT(of_run("na\xEFve\n"), Catch::EndsWith("(byte 0xef); it is the run's own; put it back as it was"));
}

TEST_CASE("text: what is UTF-8, and where it ends") {
  using Place = std::optional<size_t>;
  for (const std::string good : {"", "abc\n", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                 "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CHECK(find_invalid_utf8(good) == Place());
    CHECK(find_invalid_utf8("ab" + good + "c") == Place());
  }
  // A lone second byte, overlong forms, surrogates, beyond U+10FFFF, cut off, Latin 1.
  for (const std::string bad : {"\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
                                "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC2", "\xE2\x82",
                                "\xF0\x9F\x98", "\xE9t\xE9", "\xC3(", "\xE2(\xA1", "\xE2\x82(", "\xF0\x9F\x98("}) {
    CHECK(find_invalid_utf8(bad) == Place(0));
    CHECK(find_invalid_utf8("h\xC3\xA9" + bad) == Place(3));
  }
}

TEST_CASE("vocabulary: the most frequent first, ties by their bytes, <unk> always there") {
  const TextFolder f;
  const TextFile file = f.file("b a b\nc b a\n\n");  // b 3, <eos> 3, a 2, c 1
  const Vocabulary all = build_vocabulary(file, std::nullopt);
  CHECK(all.words() == Strings{"<eos>", "b", "a", "c", "<unk>"});
  CHECK(all.number("a") == 2);
  CHECK(all.number("zebra") == 4);
  CHECK(all.knows("c"));
  CHECK_FALSE(all.knows("zebra"));
  CHECK(all.text() == "<eos>\nb\na\nc\n<unk>\n");
  CHECK(build_vocabulary(file, 3).words() == Strings{"<eos>", "b", "<unk>"});
  CHECK(build_vocabulary(file, 2).words() == Strings{"<eos>", "<unk>"});
  CHECK(build_vocabulary(file, 5).words() == all.words());
  CHECK(build_vocabulary(f.file("<unk> a <unk>\n"), std::nullopt).words() == Strings{"<unk>", "<eos>", "a"});
  CHECK(build_vocabulary(f.file("a a a b b\n"), 3).words() == Strings{"a", "<eos>", "<unk>"});
}

TEST_CASE("vocabulary: a file with one word a line") {
  const TextFolder f;
  const auto read = [&](const std::string& text) { return read_vocabulary(f.file(text, "data.vocabulary")); };
  CHECK(read("the\r\n<unk>\n<eos>").words() == Strings{"the", "<unk>", "<eos>"});
  const Vocabulary v = build_vocabulary(f.file("x y x z\n"), std::nullopt);
  CHECK(read(v.text()).words() == v.words());
  const auto error = [&](const std::string& text) { return user_error([&] { read(text); }); };
  CHECK_THAT(error("<eos>\n<unk>\na b\n"), Catch::Contains("text.txt: line 3 is not one word"));
  CHECK_THAT(error("<eos>\n\n<unk>\n"), Catch::Contains("text.txt: line 2 is not one word"));
  CHECK_THAT(error("<eos>\n<unk>\na\na\n"), Catch::Contains("text.txt: the word \"a\" comes twice"));
  CHECK_THAT(error("<unk>\na\n"), Catch::Contains("text.txt: the word <eos> is missing; add a line with it"));
  CHECK_THAT(error("<eos>\na\n"), Catch::Contains("the word <unk> is missing"));
  for (const char* damaged : {"<eos>\n<unk>\na\na\n", "<un", "<eos>\n<unk>\na b\n"}) {
    CHECK_THAT(user_error([&] { read_vocabulary(f.file(damaged, "")); }),
               Catch::EndsWith("; it is the run's own; put it back as it was"));
  }
}

TEST_CASE("text: each worker has streams of its own, one behind the other in the text") {
  // 23 words make 22 predictions: 2 workers x 2 streams of 5; two are left over. Rows of 2: two steps, one row over.
  const TextFolder f;
  const Text text({.file = f.file(counting_text(23)), .streams = 2, .limit = {}}, numbers());
  CHECK(text.words().front() == 2);
  CHECK(text.words().back() == 0);
  CHECK(text.sample() == Shape{2});
  CHECK(text.classes() == 32);
  CHECK(text.steps_per_epoch(workers(2, 2).sampling) == 2);

  struct Truth {
    int64_t step;
    int worker;
    Words tokens, labels;
  };
  // Streams begin at words 0, 5, 10 and 15; a word's number is 2 more.
  const std::vector<Truth> truth = {{0, 0, {2, 7, 3, 8}, {3, 8, 4, 9}},    {0, 1, {12, 17, 13, 18}, {13, 18, 14, 19}},
                                    {1, 0, {4, 9, 5, 10}, {5, 10, 6, 11}}, {1, 1, {14, 19, 15, 20}, {15, 20, 16, 21}},
                                    {2, 0, {2, 7, 3, 8}, {3, 8, 4, 9}},    {2, 1, {12, 17, 13, 18}, {13, 18, 14, 19}}};
  const auto check = [](Batches& batches, const Truth& t) {
    const Batch* batch = batches.next();
    REQUIRE(batch != nullptr);
    CAPTURE(t.step, t.worker);
    CHECK(batch->step == t.step);
    CHECK(batch->worker == t.worker);
    CHECK(batch->tokens == t.tokens);
    CHECK(batch->labels == t.labels);
    CHECK(batch->values.empty());
  };
  const auto both = text.training_batches(workers(2, 2, 0, 2), {3, 4});
  for (const Truth& t : truth) check(*both, t);
  const auto second = text.training_batches(workers(2, 2, 1, 1, 1), {});  // one worker of another rank, after a resume
  for (const size_t i : {3, 5}) check(*second, truth[i]);
}

TEST_CASE("text: two workers read what one with twice the streams reads") {
  const TextFolder f;
  const TextFile file = f.file(counting_text(30));
  const Text wide({.file = file, .streams = 4, .limit = {}}, numbers());
  const Text narrow({.file = file, .streams = 2, .limit = {}}, numbers());
  const auto one = wide.training_batches(workers(1, 3), {}), two = narrow.training_batches(workers(2, 3, 0, 2), {});
  for (int step = 0; step < 5; ++step) {
    const Batch all = *one->next(), left = *two->next(), right = *two->next();
    for (size_t row = 0; row < 3; ++row) {
      const auto part = [&](const Words& tokens, size_t first, size_t width) {
        const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(row * width + first);
        return Words(from, from + 2);
      };
      CHECK(part(all.tokens, 0, 4) == part(left.tokens, 0, 2));
      CHECK(part(all.tokens, 2, 4) == part(right.tokens, 0, 2));
    }
  }
}

TEST_CASE("text: an evaluation sees every word once, in batches of rows, the last one smaller") {
  const TextFolder f;
  const int64_t streams = GENERATE(1, 2, 3), rows = GENERATE(1, 4, 100);
  const Text text({.file = f.file(counting_text(23), "data.test"), .streams = streams, .limit = {}}, numbers());
  CHECK(text.size() == 22 / streams * streams);
  std::vector<Words> seen(static_cast<size_t>(streams));
  const auto batches = text.evaluation_batches({.rows = rows}, {2, 3});
  int64_t left = text.rows();
  while (const Batch* batch = batches->next()) {
    REQUIRE(batch->tokens.size() == static_cast<size_t>(std::min(rows, left) * streams));
    left -= std::min(rows, left);
    for (size_t i = 0; i < batch->labels.size(); ++i) {
      CHECK(batch->labels[i] == (batch->tokens[i] == 23 ? 0 : batch->tokens[i] + 1));
      seen[i % static_cast<size_t>(streams)].push_back(batch->labels[i]);
    }
  }
  CHECK(left == 0);
  Words all;
  for (const Words& stream : seen) all.insert(all.end(), stream.begin(), stream.end());
  CHECK(all == Words(text.words().begin() + 1, text.words().begin() + 1 + text.size()));
}

TEST_CASE("text: texts that differ in their last word alone have other fingerprints") {
  const TextFolder f;
  const auto fingerprint = [&](const std::string& text) {
    return Text({.file = f.file(text), .streams = 1, .limit = {}}, numbers()).fingerprint();
  };
  const std::string text = counting_text(23);
  CHECK(fingerprint(text + "w1 w2") == fingerprint(text + "w1 w2"));
  CHECK(fingerprint(text + "w1 w2") != fingerprint(text + "w1 w3"));
}

TEST_CASE("text: many words that the vocabulary lacks are remarked, and nothing but such words is refused") {
  const TextFolder f;
  const Vocabulary some({"<eos>", "<unk>", "the", "cat"}, "here");
  const auto open = [&](const std::string& text) {
    return Text({.file = f.file(text, "data.test"), .streams = 1, .limit = {}}, some);
  };
  CHECK(open("the cat the cat the cat\nmat\n").remarks().empty());
  const std::vector<std::string> remarks = open("the cat sat on the mat\n").remarks();
  REQUIRE(remarks.size() == 1);
  CHECK_THAT(remarks[0], Catch::Contains("text.txt: 43 % of its words count as <unk>"));
  CHECK_THAT(open("THE CAT\nSAT\n").remarks().front(), Catch::Contains("60 % of its words"));
  CHECK_THAT(
      user_error([&] { Text({.file = f.file("THE CAT\nSAT\n"), .trains = true, .streams = 1, .limit = {}}, some); }),
      Catch::Contains("text.txt: none of its words is in the vocabulary"));
}

TEST_CASE("text: too short for its streams, or for one step of all workers") {
  const TextFolder f;
  const auto open = [&](int n, bool trains = true) {
    const TextFile file = f.file(counting_text(n), trains ? "data.train" : "data.valid");
    return Text({.file = file, .trains = trains, .streams = 4, .limit = {}}, numbers());
  };
  CHECK(open(5).rows() == 1);
  CHECK(user_error([&] { open(4); }) ==
        f.folder.path() +
            "/text.txt: 4 words cannot fill 4 streams; set data.train to a longer text, or lower "
            "training.batch_per_worker");
  CHECK_THAT(user_error([&] { open(3, false); }),
             Catch::Contains("set data.valid to") && Catch::Contains("lower data.eval_streams"));
  CHECK_THAT(user_error([&] {
               Text({.file = f.file(counting_text(25)), .trains = true, .streams = 4, .limit = 3}, numbers());
             }),
             Catch::Contains("3 words, all that data.train_limit leaves of it, cannot fill 4 streams; raise it"));
  CHECK_THAT(user_error([&] {
               Text({.file = f.file(counting_text(25)), .trains = true, .streams = 1, .limit = 1}, numbers());
             }),
             Catch::Contains("text.txt: 1 word, all that data.train_limit leaves of it, cannot fill 1 stream; raise"));
  const Text text = open(24);
  CHECK(text.steps_per_epoch(workers(1, 5).sampling) == 1);
  CHECK(user_error([&] { (void)text.steps_per_epoch(workers(2, 3).sampling); }) ==
        f.folder.path() +
            "/text.txt: one step of 2 batches with 4 streams of 3 words each needs 24 words, and the one "
            "after them, but the text has 24; take a longer one, or lower training.batch_per_worker or "
            "data.bptt");
  CHECK_THAT(user_error([&] { (void)text.steps_per_epoch(workers(1, 6).sampling); }),
             Catch::Contains("one step of 1 batch with 4 streams of 6 words each needs 24 words, and"));
  CHECK(open(25).steps_per_epoch(workers(2, 3).sampling) == 1);
  CHECK(Text({.file = f.file(counting_text(25)), .streams = 1, .limit = 7}, numbers()).size() == 6);
  const Text cut({.file = f.file(counting_text(25)), .streams = 4, .limit = 24}, numbers());
  CHECK_THAT(
      user_error([&] { (void)cut.steps_per_epoch(workers(2, 3).sampling); }),
      Catch::EndsWith("but data.train_limit leaves 24; raise it, or lower training.batch_per_worker or data.bptt"));
}

}  // namespace dgc
