#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/ptx/all_equal.h"
#include "tests/ptx/interpreter/launch.h"
#include "tests/ptx/sass/kernel.h"

namespace dgc::ptx::sass {

// "@P0 IADD3 R1, P1, R2, R3, RZ" as nvdisasm -json has it.
inline Line line_of(const std::string& text) {
  std::istringstream words(text);
  Line line;
  words >> line.opcode;
  if (line.opcode.starts_with('@')) {
    line.predicate = line.opcode;
    words >> line.opcode;
  }
  for (std::string word; words >> word;) line.operands += word;
  return line;
}

// A kernel that a test writes, an instruction to a line; a branch's target is its line's number, counted from 0, times
// 16. The addresses of its parameters, which are pointers, lie in the constant bank from 0x210 on.
inline Kernel small_kernel(const std::string& text, unsigned pointers, unsigned shared_bytes = 0) {
  Function function;
  function.name = "_test";
  std::istringstream rows(text);
  for (std::string row; std::getline(rows, row);) {
    if (row.find_first_not_of(' ') != std::string::npos) function.lines.push_back(line_of(row));
  }
  Resources resources;
  resources.param_bytes = 8 * pointers;
  resources.shared_bytes = shared_bytes;
  resources.functions["_test"] = 0;
  return make_kernel("test.cubin", function, resources);
}

// What instructions make of the operands: they read R1, R2 and R3, which are the elements of the vectors, and write
// R10.
template <typename R, typename... A>
std::vector<R> apply(const std::string& instructions, std::vector<A>... operands) {
  static_assert(sizeof(R) == 4 && ((sizeof(A) == 4) && ...));
  std::vector<R> results(std::max({operands.size()...}));
  std::string text = "S2R R60, SR_TID.X\n";
  for (size_t n = 0; n < sizeof...(A); ++n) {
    text += fmt::format("LDC.64 R62, c[0x0][{:#x}]\nIMAD.WIDE.U32 R62, R60, 0x4, R62\nLDG.E R{}, desc[UR4][R62.64]\n",
                        0x218 + 8 * n, 1 + n);
  }
  text += instructions;
  text += "\nLDC.64 R62, c[0x0][0x210]\nIMAD.WIDE.U32 R62, R60, 0x4, R62\nSTG.E desc[UR4][R62.64], R10\nEXIT\n";
  const void* const pointers[] = {results.data(), operands.data()...};
  launch(small_kernel(text, 1 + sizeof...(A)), {.block = static_cast<unsigned>(results.size())}, pointers,
         sizeof(pointers));
  return results;
}

// Whether the instructions make of a and b, with every value beside every other, what C++ makes of them.
template <typename R, typename T, typename F>
bool same_as(const std::string& instructions, const std::vector<T>& values, const F& expected) {
  const auto a = repeated(values, values.size()), b = cycled(values, values.size());
  return all_equal(instructions, apply<R>(instructions, a, b), a, b, expected);
}

}  // namespace dgc::ptx::sass
