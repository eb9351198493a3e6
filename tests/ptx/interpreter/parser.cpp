#include "tests/ptx/interpreter/parser.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/lexer.h"

namespace dgc::ptx {
namespace {

uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

std::vector<std::string_view> split_opcode(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('.'), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<Space> parse_space(std::string_view word) {
  if (word == ".global") return Space::global;
  if (word == ".shared") return Space::shared;
  if (word == ".local") return Space::local;
  if (word == ".param") return Space::param;
  if (word == ".const") return Space::constant;
  return {};
}

// Reads one entry, and the arrays that are declared outside of it.
class EntryParser {
 public:
  EntryParser(Lexer lexer, Program& program) : lexer_(std::move(lexer)), program_(program) {}

  // An array that is declared elsewhere in the file.
  void declare_at(Lexer elsewhere) {
    std::swap(lexer_, elsewhere);
    declare();
    std::swap(lexer_, elsewhere);
  }

  // .entry name(.param .align 8 .b8 name_param_0[56]) .maxntid 256 { ... }
  void parse_entry() {
    lexer_.expect(".entry");
    program_.name = lexer_.take().text;
    if (lexer_.take_if("(")) {
      while (!lexer_.take_if(")")) {
        declare();
        lexer_.take_if(",");
      }
    }
    while (!lexer_.look().is("{")) {
      const Token directive = lexer_.take();
      if (directive.kind == Token::Kind::end) lexer_.fail("an entry without a body");
      if (directive.is(".maxntid")) program_.most_threads = static_cast<unsigned>(number());
    }
    parse_body();
    for (const auto& [statement, operand] : labels_used_) {
      Operand& label = program_.statements[statement].operands[operand];
      const auto found = labels_.find(label.text);
      if (found == labels_.end()) {
        throw_ptx_error("{}:{}: nothing is called '{}'", program_.file, program_.statements[statement].line,
                        label.text);
      }
      label.value = found->second;
    }
  }

 private:
  // .shared .align 16 .b8 name[1040], with values or without
  void declare() {
    std::optional<Space> space;
    uint64_t alignment = 0;
    Type type = Type::none;
    while (lexer_.look().text.starts_with('.')) {
      const std::string_view word = lexer_.take().text;
      if (word == ".align") {
        alignment = number();
      } else if (const auto named = parse_space(word)) {
        space = named;
      } else if (const Type t = parse_type(word.substr(1)); t != Type::none) {
        type = t;
      }
    }
    if (!space || type == Type::none) lexer_.fail("a declaration of an unknown kind");
    const std::string_view name = lexer_.take().text;
    const uint64_t each = bits_of(type) / 8;
    uint64_t count = 1;
    if (lexer_.take_if("[")) {
      count = number();
      lexer_.expect("]");
    }
    const uint64_t address = place(*space, each * count, std::max(alignment, each));
    if (lexer_.take_if("=")) read_values(address, each);
    variables_[name] = {*space, address};
  }

  uint64_t place(Space space, uint64_t bytes, uint64_t alignment) {
    if (space == Space::global || space == Space::constant) {
      const uint64_t address = rounded_up(program_.constants.size(), alignment);
      program_.constants.resize(address + bytes);
      return address;
    }
    unsigned& used = space == Space::shared  ? program_.shared_bytes
                     : space == Space::local ? program_.local_bytes
                                             : program_.param_bytes;
    const uint64_t address = rounded_up(used, alignment);
    used = static_cast<unsigned>(address + bytes);
    return address;
  }

  void read_values(uint64_t address, uint64_t each) {
    lexer_.expect("{");
    while (!lexer_.take_if("}")) {
      const uint64_t bits = number();
      if (address + each > program_.constants.size()) lexer_.fail("more values than the array holds");
      std::memcpy(program_.constants.data() + address, &bits, each);
      address += each;
      lexer_.take_if(",");
    }
  }

  uint64_t number() {
    const bool negative = lexer_.take_if("-");
    uint64_t bits = 0;
    if (!parse_number(lexer_.look().text, bits)) lexer_.fail("a number was expected");
    lexer_.take();
    return negative ? ~bits + 1 : bits;
  }

  void parse_body() {
    lexer_.expect("{");
    scopes_.emplace_back();
    while (!scopes_.empty()) {
      const Token& next = lexer_.look();
      if (next.kind == Token::Kind::end) lexer_.fail("the end of the file inside an entry");
      if (next.is("{")) {
        lexer_.take();
        scopes_.emplace_back();
      } else if (next.is("}")) {
        lexer_.take();
        scopes_.pop_back();
      } else if (next.is(".reg")) {
        declare_registers();
      } else if (next.is(".loc") || next.is(".file")) {
        lexer_.take();
        lexer_.skip_line();
      } else if (next.is(".pragma")) {
        while (!lexer_.take_if(";")) lexer_.take();
      } else if (next.text.starts_with('.')) {
        declare();
        lexer_.expect(";");
      } else if (!next.is(";")) {
        parse_statement();
      } else {
        lexer_.take();
      }
    }
  }

  // .reg .b32 %r<25>;  or  .reg .f16 low, high;
  void declare_registers() {
    lexer_.expect(".reg");
    const Type type = parse_type(lexer_.take().text.substr(1));
    if (type == Type::none) lexer_.fail("registers of an unknown type");
    do {
      const std::string_view name = lexer_.take().text;
      if (lexer_.take_if("<")) {
        number();
        lexer_.expect(">");
        scopes_.back().families[name] = type;
      } else {
        scopes_.back().registers[name] = add_register(type);
      }
    } while (lexer_.take_if(","));
    lexer_.expect(";");
  }

  unsigned add_register(Type type) {
    program_.registers.push_back(type);
    return static_cast<unsigned>(program_.registers.size() - 1);
  }

  std::optional<unsigned> find_register(std::string_view name) {
    const std::string_view family = name.substr(0, name.find_last_not_of("0123456789") + 1);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->registers.find(name); found != scope->registers.end()) return found->second;
      if (const auto found = scope->families.find(family); found != scope->families.end()) {
        return scope->registers[name] = add_register(found->second);
      }
    }
    return {};
  }

  void parse_statement() {
    Statement s;
    s.line = lexer_.look().line;
    const char* const begin = lexer_.position();
    if (lexer_.take_if("@")) {
      s.guarded = true;
      s.guard_negated = lexer_.take_if("!");
      const auto guard = find_register(lexer_.look().text);
      if (!guard) lexer_.fail("a guard that is no register");
      s.guard = *guard;
      lexer_.take();
    }
    const Token name = lexer_.take();
    if (name.kind != Token::Kind::word) lexer_.fail("an instruction was expected");
    if (lexer_.take_if(":")) {
      labels_[name.text] = program_.statements.size();
      return;
    }
    s.opcode = split_opcode(name.text);
    while (!lexer_.look().is(";")) {
      s.operands.push_back(parse_operand());
      if (!lexer_.take_if(",")) break;
    }
    s.text = std::string_view(begin, static_cast<size_t>(lexer_.end_of_last() - begin));
    lexer_.expect(";");
    for (size_t i = 0; i < s.operands.size(); ++i) {
      if (s.operands[i].kind == Operand::Kind::label) labels_used_.emplace_back(program_.statements.size(), i);
    }
    program_.statements.push_back(std::move(s));
  }

  Operand parse_operand() {
    const char* const begin = lexer_.position();
    Operand operand = parse_one();
    if (lexer_.take_if("|")) {
      Operand pair;
      pair.kind = Operand::Kind::group;
      pair.parts = {std::move(operand), parse_one()};
      operand = std::move(pair);
    }
    operand.text = std::string_view(begin, static_cast<size_t>(lexer_.end_of_last() - begin));
    return operand;
  }

  Operand parse_one() {
    Operand operand;
    if (lexer_.take_if("!")) {
      operand = parse_one();
      operand.negated = true;
    } else if (lexer_.take_if("{")) {
      operand.kind = Operand::Kind::group;
      while (!lexer_.take_if("}")) {
        operand.parts.push_back(parse_operand());
        lexer_.take_if(",");
      }
    } else if (lexer_.take_if("[")) {
      operand = parse_address();
    } else {
      operand = parse_word();
    }
    return operand;
  }

  // [%rd1+16], [name], [name+-4]
  Operand parse_address() {
    const Operand base = parse_word();
    Operand operand = base;
    operand.kind = Operand::Kind::address;
    operand.based = base.kind == Operand::Kind::reg;
    if (base.kind == Operand::Kind::variable) {
      operand.value = 0;
    } else if (base.kind != Operand::Kind::reg && base.kind != Operand::Kind::number) {
      lexer_.fail("an address of an unknown kind");
    }
    if (lexer_.take_if("+") || lexer_.look().is("-")) operand.value += number();
    lexer_.expect("]");
    return operand;
  }

  Operand parse_word() {
    Operand operand;
    uint64_t bits = 0;
    const Token& next = lexer_.look();
    if (next.is("-") || parse_number(next.text, bits)) {
      operand.kind = Operand::Kind::number;
      operand.value = number();
      return operand;
    }
    if (next.kind != Token::Kind::word) lexer_.fail("an operand was expected");
    operand.text = next.text;
    if (const auto reg = find_register(next.text)) {
      operand.kind = Operand::Kind::reg;
      operand.reg = *reg;
    } else if (const auto found = variables_.find(next.text); found != variables_.end()) {
      operand.kind = Operand::Kind::variable;
      operand.variable = found->second;
    } else if (next.is("_")) {
      operand.kind = Operand::Kind::discard;
    } else {
      operand.kind = next.text.starts_with('%') ? Operand::Kind::special : Operand::Kind::label;
    }
    lexer_.take();
    return operand;
  }

  struct Scope {
    std::map<std::string_view, unsigned> registers;
    std::map<std::string_view, Type> families;  // %r for %r<25>
  };

  Lexer lexer_;
  Program& program_;
  std::vector<Scope> scopes_;
  std::map<std::string_view, Variable> variables_;
  std::map<std::string_view, size_t> labels_;
  std::vector<std::pair<size_t, size_t>> labels_used_;  // statement and operand
};

}  // namespace

Module::Module(std::string file, std::string text) : file_(std::move(file)), text_(std::move(text)) {
  unsigned line = 1;
  for (size_t begin = 0; begin < text_.size(); ++line) {
    const size_t end = std::min(text_.find('\n', begin), text_.size());
    const std::string_view row = std::string_view(text_).substr(begin, end - begin);
    if (row.starts_with('.')) {  // what is inside of an entry is indented
      const std::string_view before = row.substr(0, row.find_first_of("[({"));
      if (const size_t entry = before.find(".entry "); entry != std::string_view::npos) {
        const std::string_view name = before.substr(entry + 7);
        names_.emplace_back(name.substr(0, name.find_last_not_of(" \t") + 1));
        places_.push_back({begin + entry, line});
      } else if (before.find(".global ") != std::string_view::npos ||
                 before.find(".const ") != std::string_view::npos ||
                 before.find(".shared ") != std::string_view::npos) {
        arrays_.push_back({begin, line});
      }
    }
    begin = end + 1;
  }
}

Program Module::parse(const std::string& entry) const {
  const auto found = std::ranges::find(names_, entry);
  if (found == names_.end()) throw_ptx_error("{}: there is no entry {}", file_, entry);
  const Place& place = places_[static_cast<size_t>(found - names_.begin())];
  Program program;
  program.file = file_;
  program.line = place.line;
  const auto lexer_at = [this](const Place& where) {
    return Lexer(std::string_view(text_).substr(where.offset), where.line, file_);
  };
  EntryParser parser(lexer_at(place), program);
  for (const Place& array : arrays_) parser.declare_at(lexer_at(array));
  parser.parse_entry();
  return program;
}

}  // namespace dgc::ptx
