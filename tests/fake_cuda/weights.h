#pragma once

#include <catch.hpp>
#include <cmath>
#include <vector>

#include "train/rank.h"

namespace dgc::test {

inline std::vector<float> weights_of(const Rank& rank) {
  const Arena& weights = rank.weights();
  std::vector<float> values(static_cast<size_t>(weights.extent()));
  weights.device().copy_out(values.data(), weights.data(), weights.bytes());
  return values;
}

// The largest difference between two numbers at the same place.
inline double apart(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::fmax(worst, std::fabs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

}  // namespace dgc::test
