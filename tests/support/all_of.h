#pragma once

#include <vector>

#include "config/is_enumerator.h"

namespace dgc::test {

template <class Enum, int from = 0>
consteval int number_of() {
  if constexpr (is_enumerator<static_cast<Enum>(from)>()) {
    return number_of<Enum, from + 1>();
  } else {
    return from;
  }
}

// All enumerators of an enum that counts from 0, so that a test of all of them has a new one, too.
template <class Enum>
std::vector<Enum> all_of() {
  std::vector<Enum> all;
  for (int i = 0; i < number_of<Enum>(); ++i) all.push_back(static_cast<Enum>(i));
  return all;
}

}  // namespace dgc::test
