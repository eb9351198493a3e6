#pragma once

#include <catch.hpp>
#include <cstring>
#include <string>
#include <vector>

namespace dgc::ptx {

// Every element of one vector beside every one of the other.
template <typename T>
std::vector<T> repeated(const std::vector<T>& values, size_t times) {
  std::vector<T> all;
  for (const T& value : values) all.insert(all.end(), times, value);
  return all;
}
template <typename T>
std::vector<T> cycled(const std::vector<T>& values, size_t times) {
  std::vector<T> all;
  for (size_t i = 0; i < times; ++i) all.insert(all.end(), values.begin(), values.end());
  return all;
}

// Whether the results are, bit for bit, what `expected` makes of a and b. Says which are not.
template <typename R, typename T, typename F>
bool all_equal(const std::string& instructions, const std::vector<R>& results, const std::vector<T>& a,
               const std::vector<T>& b, const F& expected) {
  bool same = true;
  for (size_t i = 0; i < results.size(); ++i) {
    const R wanted = expected(a[i], b[i]);
    if (std::memcmp(&results[i], &wanted, sizeof(R)) == 0) continue;
    UNSCOPED_INFO(instructions << " of " << a[i] << " and " << b[i] << " is " << results[i] << ", not " << wanted);
    same = false;
  }
  return same;
}

}  // namespace dgc::ptx
