#pragma once

#include <string>
#include <vector>

// The instructions of a cubin as nvdisasm prints them.
namespace dgc::ptx::sass {

struct Line {
  std::string predicate;  // "@P0", "@!UP1" or nothing
  std::string opcode;     // with its modifiers
  std::string operands;   // between commas
};

struct Function {
  std::string name;         // as the object file has it
  std::vector<Line> lines;  // of 16 bytes each
};

// Reads what `nvdisasm -json` has printed; `origin` is what errors call it. Throws UserError or PtxError where it is
// something else.
std::vector<Function> parse_listing(const std::string& json, const std::string& origin);

}  // namespace dgc::ptx::sass
