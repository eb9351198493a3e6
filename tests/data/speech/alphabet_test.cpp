#include "data/speech/alphabet.h"

#include "data/speech/bad_example.h"
#include "tensor/utf8.h"
#include "tests/data/fixtures.h"

namespace dgc {
namespace {

TEST_CASE("alphabet: labels and back") {
  const Alphabet english(kEnglish);
  CHECK(english.classes() == 29);
  CHECK(english.space() == 28);
  CHECK(english.labels("'AZ", "x") == std::vector<int32_t>{1, 2, 27});
  CHECK(english.labels("  GO \t ON\n", "x") == english.labels("GO ON", "x"));
  CHECK(english.text(english.labels("DON'T STOP", "x")) == "DON'T STOP");

  const Alphabet umlauts("a\xc3\xa4\xe2\x82\xac");  // a, a-umlaut, euro: one, two and three bytes
  CHECK(umlauts.classes() == 4);
  CHECK(umlauts.space() == std::nullopt);
  CHECK(umlauts.labels("\xe2\x82\xac\xc3\xa4", "x") == std::vector<int32_t>{3, 2});
}

TEST_CASE("alphabet: what is outside is named") {
  const Alphabet english(kEnglish);
  const auto complaint = [&](const std::string& text) {
    try {
      english.labels(text, "list: utt7");
    } catch (const BadExample& error) {
      return std::string(error.what());
    }
    FAIL("no BadExample");
    return std::string();
  };
  CHECK_THAT(complaint("GO 4 IT"), Catch::StartsWith("list: utt7: the character '4' of its transcript is not in"));
  CHECK_THAT(complaint("go"), Catch::Contains("'g'"));
  CHECK_THAT(complaint("CAF\xc3\x89"), Catch::Contains("'\xc3\x89'"));
  CHECK_THAT(complaint(std::string("G\0O", 3)), Catch::Contains("the character '\\x00' of its transcript is not in"));
  CHECK_THAT(complaint("\xff"), Catch::Contains("'\\xff'"));
  CHECK_THAT(complaint(""), Catch::StartsWith("list: utt7: its transcript is empty"));
  CHECK_THAT(complaint("  \t"), Catch::Contains("is empty"));
  CHECK_THAT(user_error([] { Alphabet(""); }), Catch::Contains("no characters"));
  CHECK_THAT(user_error([] { Alphabet("ABA"); }), Catch::Contains("'A' twice"));
  CHECK_THAT(user_error([] { Alphabet("\x1b\x1b"); }), Catch::Contains("'\\x1b' twice"));
}

TEST_CASE("UTF-8: characters, and bytes that are none") {
  const auto [text, count] = GENERATE(table<std::string, size_t>({
      {"", 0},
      {"abc", 3},
      {"\xc3\xa4z", 2},
      {"\xf0\x9f\x98\x80", 1},
      {"\xc3", 1},        // cut off
      {"\xe2\x82", 2},    // cut off
      {"\xc3z", 2},       // followed by no continuation
      {"\x80\x80", 2},    // continuations of nothing
      {"\xff\xfe z", 4},  // never in UTF-8
      {"a\xcc\x81", 2},   // a combining accent is a character of its own
  }));
  CAPTURE(text);
  const auto characters = utf8_characters(text);
  CHECK(characters.size() == count);
  std::string together;
  for (const std::string_view c : characters) together += c;
  CHECK(together == text);
}

}  // namespace
}  // namespace dgc
