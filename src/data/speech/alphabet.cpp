#include "data/speech/alphabet.h"

#include "data/speech/bad_example.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tensor/utf8.h"

namespace dgc {

Alphabet::Alphabet(const std::string& characters) {
  for (const std::string_view character : utf8_characters(characters)) {
    characters_.emplace_back(character);
    if (!labels_.emplace(character, static_cast<int32_t>(characters_.size())).second) {
      throw KeyError("data.alphabet", fmt::format("the alphabet has the character '{}' twice", printable(character)));
    }
  }
  if (characters_.empty()) throw KeyError("data.alphabet", "the alphabet has no characters");
}

const std::string& Alphabet::character(int32_t label) const {
  DGC_CHECK(label > kBlank && label < classes(), "a character's label");
  return characters_[static_cast<size_t>(label) - 1];
}

std::optional<int32_t> Alphabet::space() const {
  const auto found = labels_.find(" ");
  return found != labels_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<int32_t> Alphabet::labels(std::string_view text, const std::string& name) const {
  const std::string clean = single_spaced(text);
  if (clean.empty()) throw_bad_example("{}: its transcript is empty; remove it, or write down what is said", name);
  std::vector<int32_t> out;
  for (const std::string_view character : utf8_characters(clean)) {
    const auto found = labels_.find(character);
    if (found == labels_.end()) {
      throw_bad_example(
          "{}: the character '{}' of its transcript is not in data.alphabet; add it there, or change the "
          "transcript",
          name, printable(character));
    }
    out.push_back(found->second);
  }
  return out;
}

std::string Alphabet::text(std::span<const int32_t> labels) const {
  std::string out;
  for (const int32_t label : labels) out += character(label);
  return out;
}

std::string single_spaced(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n\v\f";
  std::string out;
  for (const char c : text) {
    if (kWhite.find(c) == std::string_view::npos) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace dgc
