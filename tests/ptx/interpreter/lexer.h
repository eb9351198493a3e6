#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dgc::ptx {

// A word (an opcode with its modifiers, a register, a directive, a label, a number), a mark, or a string with its
// quotes.
struct Token {
  enum class Kind { word, mark, string, end };
  Kind kind = Kind::end;
  std::string_view text;
  unsigned line = 0;
  bool is(std::string_view what) const { return kind != Kind::end && text == what; }
};

// Cuts PTX into tokens. The text must outlive the tokens.
class Lexer {
 public:
  // `line` is the number of the line on which the text begins; `file` is what errors call it.
  Lexer(std::string_view text, unsigned line, std::string file);

  const Token& look() const { return next_; }
  Token take();
  void expect(std::string_view mark);  // takes the mark; throws PtxError where there is another token
  bool take_if(std::string_view mark);
  void skip_line();  // the rest of the line of the token that was taken last

  const char* position() const { return next_.text.data(); }
  const char* end_of_last() const { return end_of_last_; }
  [[noreturn]] void fail(std::string_view what) const;  // names the file and the line of the next token

 private:
  void advance();

  std::string_view rest_;
  unsigned line_;
  std::string file_;
  Token next_;
  unsigned last_line_ = 0;
  const char* end_of_last_ = nullptr;
};

// The bits of a number as PTX writes it: 12, 0x1F, 7U, 0f3F800000 (a float's bits), 0d3FF0000000000000 (a double's).
// False where the word is no number.
bool parse_number(std::string_view word, uint64_t& bits);

}  // namespace dgc::ptx
