#include "config/check_value.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>

#include "json/nearest.h"
#include "tensor/errors.h"
#include "tensor/utf8.h"

namespace dgc {
namespace {

// In the order of Kind: what values of a kind are called, and what such a value must be. Choices differ from key to
// key.
struct KindWords {
  std::string_view name, one;
};
constexpr auto kKindWords = std::to_array<KindWords>({{"boolean", "true or false"},
                                                      {"integer", "an integer"},
                                                      {"number", "a number"},
                                                      {"string", "a string"},
                                                      {"choice", ""},
                                                      {"list of integers", "a list of integers"},
                                                      {"list of numbers", "a list of numbers"},
                                                      {"list of strings", "a list of strings"},
                                                      {"list of layers", "a list of layers"}});
static_assert(kKindWords.size() == static_cast<size_t>(Kind::layers) + 1);

const KindWords& words_of(Kind kind) { return kKindWords[static_cast<size_t>(kind)]; }

// The value as text if it is short enough for a sentence, else its type.
std::string shortened(const Json& value) {
  constexpr size_t kLongest = 60;
  const std::string text = json_text(value);
  return text.size() <= kLongest ? text : json_type_name(value);
}

bool is_integer(const Json& value) {
  return value.is_number() && value.get<double>() == std::floor(value.get<double>());
}

bool has_kind(const Key& key, const Json& value) {
  switch (key.kind) {
    case Kind::boolean:
      return value.is_boolean();
    // 1e4 and 32.0 are integers, as in JSON Schema.
    case Kind::integer:
      return is_integer(value);
    case Kind::number:
      return value.is_number();
    case Kind::text:
    case Kind::choice:
      return value.is_string();
    case Kind::integers:
    case Kind::numbers:
    case Kind::texts:
    case Kind::layers:
      return value.is_array();
  }
  return false;
}

void check_range(const Key& key, const Json& number, const std::string& shown, const Origin& origin) {
  const double value = number.get<double>();
  const bool low = (key.minimum && value < *key.minimum) || (key.above && value <= *key.above);
  const bool high = (key.maximum && value > *key.maximum) || (key.below && value >= *key.below);
  if (low || high)
    origin.refuse(shown, fmt::format("{} is out of range; it must be {}", number.dump(), range_words(key)));
}

void check_text(const Key& key, const std::string& value, const std::string& shown, const Origin& origin) {
  if (find_invalid_utf8(value)) origin.refuse(shown, "not UTF-8, and so config.json could not hold it");
  if (value.find('\0') != std::string::npos) origin.refuse(shown, "it has a NUL in it");
  const bool one_line = key.pattern == ".+";
  if (one_line && value.empty()) origin.refuse(shown, "it is empty");
  if (one_line && value.find('\n') != std::string::npos) origin.refuse(shown, "it has a line break in it");
  if (one_line && !key.path_on_disk) return;  // an alphabet may have thousands of characters
  constexpr size_t kLongest = 1000;           // std::regex recurses once per character
  if (value.size() > kLongest) origin.refuse(shown, fmt::format("longer than {} bytes", kLongest));
  if (!key.pattern.empty() && !std::regex_match(value, std::regex(key.pattern))) {
    const std::string hint = key.pattern_hint.empty() ? "" : "; " + key.pattern_hint;
    origin.refuse(shown, fmt::format("{} does not match {}{}", json_text(value), key.pattern, hint));
  }
}

void check_choice(const Key& key, const std::string& value, const std::string& shown, const Origin& origin) {
  if (std::find(key.choices.begin(), key.choices.end(), value) != key.choices.end()) return;
  origin.refuse(shown,
                fmt::format("{}, not {}{}", expected_words(key), shortened(value), did_you_mean(value, key.choices)));
}

// Checks one entry of a list of numbers or strings.
void check_entry(const Key& key, const Json& value, const std::string& shown, const Origin& origin) {
  const auto expect = [&](bool fits, const char* what) {
    if (!fits) origin.refuse(shown, fmt::format("it must be {}, not {}", what, shortened(value)));
  };
  if (key.kind == Kind::texts) {
    expect(value.is_string(), "a string");
    return check_text(key, value.get<std::string>(), shown, origin);
  }
  expect(value.is_number(), "a number");
  if (key.kind == Kind::integers) expect(is_integer(value), "an integer");
  check_range(key, value, shown, origin);
}

void check_list(const Key& key, const Json& list, const std::string& shown, const Origin& origin) {
  if (list.size() < key.min_items) origin.refuse(shown, fmt::format("it must have at least {} entry", key.min_items));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string entry = fmt::format("{}[{}]", shown, i);
    if (key.kind == Kind::layers) {
      check_object(layer_keys(), list[i], entry, origin);
    } else {
      check_entry(key, list[i], entry, origin);
    }
  }
}

// 1000000, not 1e+06
std::string number_words(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e16;
  return whole ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{}", value);
}

}  // namespace

std::string quoted(std::vector<std::string> words, char mark) {
  for (auto& word : words) word = fmt::format("{}{}{}", mark, word, mark);
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string_view kind_name(Kind kind) { return words_of(kind).name; }

std::string expected_words(const Key& key) {
  if (key.kind != Kind::choice) return fmt::format("it must be {}", words_of(key.kind).one);
  return (key.choices.size() > 1 ? "it must be one of " : "it must be ") + quoted(key.choices);
}

std::string range_words(const Key& key) {
  std::vector<std::string> words;
  const auto say = [&](const char* what, const std::optional<double>& bound) {
    if (bound) words.push_back(fmt::format("{} {}", what, number_words(*bound)));
  };
  say("at least", key.minimum);
  say("more than", key.above);
  say("at most", key.maximum);
  say("less than", key.below);
  return fmt::format("{}", fmt::join(words, " and "));
}

void check_value(const Key& key, const Json& value, const std::string& shown, const Origin& origin) {
  if (value.is_null() && key.nullable) return;
  if (!has_kind(key, value)) {
    origin.refuse(shown,
                  fmt::format("{}{}, not {}", expected_words(key), key.nullable ? " or null" : "", shortened(value)));
  }
  if (key.kind == Kind::text) check_text(key, value.get<std::string>(), shown, origin);
  if (key.kind == Kind::choice) check_choice(key, value.get<std::string>(), shown, origin);
  if (value.is_number()) check_range(key, value, shown, origin);
  if (value.is_array()) check_list(key, value, shown, origin);
}

}  // namespace dgc
