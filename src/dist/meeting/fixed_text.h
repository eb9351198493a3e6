#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace dgc {

// Text in a frame of fixed size, which travels as it lies in memory: zeros fill the rest, and the last byte is always
// zero.

template <size_t n>
void set_text(char (&to)[n], const std::string& text) {  // keeps the beginning of a text that is too long
  std::memset(to, 0, n);
  std::memcpy(to, text.data(), std::min(text.size(), n - 1));
}

template <size_t n>
std::string get_text(const char (&from)[n]) {
  return {from, strnlen(from, n)};
}

}  // namespace dgc
