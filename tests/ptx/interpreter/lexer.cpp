#include "tests/ptx/interpreter/lexer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "tests/ptx/interpreter/error.h"

namespace dgc::ptx {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}

// The length of the word that the text begins with. A colon belongs to it only where it is doubled: L1::no_allocate.
size_t word_length(std::string_view text) {
  size_t length = 0;
  for (;;) {
    if (text.substr(length, 2) == "::") {
      length += 2;
    } else if (length < text.size() && in_word(text[length])) {
      ++length;
    } else {
      return length;
    }
  }
}

}  // namespace

Lexer::Lexer(std::string_view text, unsigned line, std::string file)
    : rest_(text), line_(line), file_(std::move(file)) {
  advance();
}

Token Lexer::take() {
  const Token token = next_;
  last_line_ = token.line;
  end_of_last_ = token.text.data() + token.text.size();
  advance();
  return token;
}

void Lexer::expect(std::string_view mark) {
  if (!take_if(mark)) fail(fmt::format("'{}' was expected", mark));
}

bool Lexer::take_if(std::string_view mark) {
  if (!next_.is(mark)) return false;
  take();
  return true;
}

void Lexer::skip_line() {
  while (next_.kind != Token::Kind::end && next_.line == last_line_) advance();
}

void Lexer::fail(std::string_view what) const {
  throw_ptx_error("{}:{}: {} at '{}'", file_, next_.line, what, next_.text.substr(0, 60));
}

void Lexer::advance() {
  for (;;) {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0) {
      line_ += rest_[0] == '\n';
      rest_.remove_prefix(1);
    }
    if (rest_.starts_with("//")) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (rest_.starts_with("/*")) {
      const size_t end = std::min(rest_.find("*/") + 2, rest_.size());
      line_ += static_cast<unsigned>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      rest_.remove_prefix(end);
    } else {
      break;
    }
  }
  next_ = {Token::Kind::end, rest_.substr(0, 0), line_};
  if (rest_.empty()) return;
  size_t length = 1;
  next_.kind = Token::Kind::mark;
  if (rest_[0] == '"') {
    next_.kind = Token::Kind::string;
    length = std::min(rest_.find('"', 1) + 1, rest_.size());
  } else if (in_word(rest_[0])) {
    next_.kind = Token::Kind::word;
    length = word_length(rest_);
  }
  next_.text = rest_.substr(0, length);
  rest_.remove_prefix(length);
}

bool parse_number(std::string_view word, uint64_t& bits) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) == 0) return false;
  int base = 10;
  if (word.size() > 2 && word[0] == '0' && std::string_view("xXfFdD").find(word[1]) != std::string_view::npos) {
    base = 16;
    word.remove_prefix(2);
  }
  if (word.back() == 'U') word.remove_suffix(1);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bits, base);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace dgc::ptx
