#include "json/text.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tensor/utf8.h"

namespace dgc {
namespace {

constexpr size_t kMaxDepth = 100;  // far beyond any file of ours; keeps a hostile file from exhausting memory

// A whole text, or a line of a file, of which the origin says the number.
enum class Extent { text, line };

// "column" counts bytes, from 1, as compilers do.
std::string place(const std::string& text, size_t byte, const std::string& origin, Extent extent) {
  const size_t at = std::min(byte > 0 ? byte - 1 : 0, text.size());
  if (extent == Extent::line) return fmt::format("{}, column {}", origin, at + 1);
  const auto begin = text.begin(), end = begin + static_cast<std::ptrdiff_t>(at);
  const auto line = 1 + std::count(begin, end, '\n');
  const size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return fmt::format("{}: line {}, column {}", origin, line, at - (start == std::string::npos ? 0 : start + 1) + 1);
}

// Takes the reason from nlohmann's "[json...] parse error at line 1, column 2: syntax error while parsing value -
// REASON; last read: ..." or "[json...] number overflow parsing '1e999'"
std::string reason(const std::string& what) {
  const size_t dash = what.find(" - "), colon = what.rfind(": ", dash), bracket = what.find("] ");
  const size_t before = dash != std::string::npos ? dash + 3 : colon != std::string::npos ? colon + 2 : bracket + 2;
  std::string text = what.substr(before);
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr size_t kLongest = 160;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// The end of a sentence about a text that the parser has given up at byte `at`: the rule of JSON that other notations
// have not, where that byte tells which one it is; "" elsewhere. why: the parser's reason.
std::string broken_rule(const std::string& text, size_t at, const std::string& why) {
  if (at >= text.size()) return "";
  const auto starts = [&](const char* what) { return text.compare(at, std::strlen(what), what) == 0; };
  if (why.starts_with("unexpected") && (starts("}") || starts("]"))) {
    const size_t before = at == 0 ? std::string::npos : text.find_last_not_of(" \t\r\n", at - 1);
    return before != std::string::npos && text[before] == ',' ? "; no comma before it" : "";
  }
  const bool begins = at == 0 || std::isalpha(static_cast<unsigned char>(text[at - 1])) == 0;
  if (!why.starts_with("invalid literal") || !begins) return "";
  if (starts("//") || starts("/*") || starts("#")) return "; JSON has no comments";
  if (starts("'")) return "; strings stand in double quotes";
  if (starts("NaN")) return "; JSON has no NaN";
  const char* const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::string word = text.substr(at, text.find_first_not_of(letters, at) - at);
  static const std::set<std::string> literals = {"True", "TRUE", "False", "FALSE", "None", "NONE", "Null", "NULL"};
  return literals.contains(word) ? "; true, false and null are written in small letters" : "";
}

// Walks the text once to find what the parser would hide or explain badly, with the path of where it is.
class StrictReader final : public nlohmann::json_sax<Json> {
 public:
  StrictReader(const std::string& text, const std::string& origin, Extent extent)
      : text_(text), origin_(origin), extent_(extent) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open({false, 0, "", {}}); }
  bool start_array(size_t) override { return open({true, 0, "", {}}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    level.name = name;
    if (name.find('\0') != std::string::npos) throw_user_error("{}: {}: a key has a NUL", origin_, path());
    if (!level.seen.insert(name).second) throw_user_error("{}: {}: this key is given twice", origin_, path());
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string why = reason(error.what());
    throw_user_error("{}: not valid JSON: {}{}", place(text_, byte, origin_, extent_), why,
                     broken_rule(text_, byte > 0 ? byte - 1 : 0, why));
  }

 private:
  struct Level {
    bool array;
    size_t index;
    std::string name;
    std::set<std::string> seen;
  };

  bool value() {
    if (!levels_.empty()) ++levels_.back().index;
    return true;
  }
  bool open(Level level) {
    if (levels_.size() == kMaxDepth) throw_user_error("{}: {}: nested too deeply", origin_, path());
    levels_.push_back(std::move(level));
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }
  std::string path() const {
    std::string out;
    for (const Level& level : levels_) {
      if (level.array) {
        out += fmt::format("[{}]", level.index);
      } else {
        out += (out.empty() ? "" : ".") + printable(level.name);
      }
    }
    return out;
  }

  const std::string& text_;
  const std::string& origin_;
  Extent extent_;
  std::vector<Level> levels_;
};

Json parse(const std::string& text, const std::string& origin, Extent extent) {
  // nlohmann/json takes a NUL for the end of the text.
  if (const size_t nul = text.find('\0'); nul != std::string::npos) {
    throw_user_error("{}: not valid JSON: a NUL byte", place(text, nul + 1, origin, extent));
  }
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
  if (blank && extent == Extent::text) throw_user_error("{}: it is empty", origin);
  StrictReader reader(text, origin, extent);
  Json::sax_parse(text, &reader);
  return Json::parse(text);
}

}  // namespace

Json parse_json(const std::string& text, const std::string& origin) { return parse(text, origin, Extent::text); }

Json parse_json_line(const std::string& line, const std::string& where) { return parse(line, where, Extent::line); }

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string printable_json(const std::string& json) {
  std::string out;
  for (const std::string_view character : utf8_characters(json)) {
    if (character == "\n" || !is_control(character)) {
      out += character;
      continue;
    }
    const auto byte = [&](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(character[i])); };
    unsigned code = byte(0) & (character.size() == 1 ? 0xffU : character.size() == 2 ? 0x1fU : 0x0fU);
    for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3fU);
    out += fmt::format("\\u{:04x}", code);
  }
  return out;
}

const Json& json_member(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw_user_error("{}: {} is missing", where, key);
  return *found;
}

std::string json_string(const Json& object, const char* key, const std::string& where) {
  const Json& value = json_member(object, key, where);
  if (!value.is_string()) throw_user_error("{}: {} must be a string, not {}", where, key, json_type_name(value));
  return value.get<std::string>();
}

void require_object(const Json& value, const std::string& where) {
  if (!value.is_object()) throw_user_error("{}: must be an object, not {}", where, json_type_name(value));
}

std::string json_type_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    default:
      return "a number";
  }
}

std::ifstream open_to_read(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_user_error("{}: cannot open this file: {}", path, error_text());
  return file;
}

std::string read_text_file(const std::string& path, size_t most) {
  std::ifstream file = open_to_read(path);
  errno = 0;
  std::string text;
  std::vector<char> chunk(1 << 16);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    text.append(chunk.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > most) throw_user_error("{}: longer than the {} MiB that such a file may have", path, most >> 20);
  }
  if (file.bad()) throw_user_error("{}: cannot read this file: {}", path, error_text());
  return text;
}

}  // namespace dgc
