#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/ptx/all_equal.h"
#include "tests/ptx/small_kernel.h"

namespace dgc::ptx {

template <typename T>
std::string register_of(int number) {
  return fmt::format("%{}{}", sizeof(T) == 8 ? "rd" : sizeof(T) == 4 ? "r" : "rs", number);
}

// What instructions make of the operands: they read the registers {a}, {b} and {c}, whose values are the elements of
// the vectors, and write {d}.
template <typename R, typename... A>
std::vector<R> apply(const std::string& instructions, std::vector<A>... operands) {
  std::vector<R> results(std::max({operands.size()...}));
  std::string body = fmt::format(
      "mov.u32 %r80, %tid.x; mov.u32 %r81, %ctaid.x; mad.lo.u32 %r80, %r81, 64, %r80;"
      "setp.ge.u32 %p80, %r80, {}; @%p80 ret; cvt.u64.u32 %rd80, %r80;",
      results.size());
  int next = 0;
  const auto load = [&]<typename T>(const std::vector<T>&) {
    body += fmt::format("mad.lo.u64 %rd81, %rd80, {}, %rd{}; ld.global.b{} {}, [%rd81];", sizeof(T), 91 + next,
                        8 * sizeof(T), register_of<T>(next));
    ++next;
  };
  (load(operands), ...);
  std::vector<std::string> names;
  (names.push_back(register_of<A>(static_cast<int>(names.size()))), ...);
  names.resize(3);
  body += fmt::format(fmt::runtime(instructions), fmt::arg("d", register_of<R>(10)), fmt::arg("a", names[0]),
                      fmt::arg("b", names[1]), fmt::arg("c", names[2]));
  body += fmt::format(";mad.lo.u64 %rd81, %rd80, {}, %rd90; st.global.b{} [%rd81], {};", sizeof(R), 8 * sizeof(R),
                      register_of<R>(10));
  const SmallKernel kernel(body, 1 + sizeof...(A));
  kernel.run({.grid = static_cast<unsigned>(results.size() + 63) / 64, .block = 64},
             {results.data(), const_cast<std::remove_const_t<A>*>(operands.data())...});
  return results;
}

// Whether the instructions make of a and b, with every value beside every other, what C++ makes of them.
template <typename R, typename T, typename F>
bool same_as(const std::string& instructions, const std::vector<T>& values, const F& expected) {
  const auto a = repeated(values, values.size()), b = cycled(values, values.size());
  return all_equal(instructions, apply<R>(instructions, a, b), a, b, expected);
}

}  // namespace dgc::ptx
