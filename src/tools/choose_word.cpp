#include "tools/choose_word.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/errors.h"

namespace dgc {

int32_t choose_word(std::span<const float> logits, const WordChoice& choice) {
  std::vector<double> values(logits.begin(), logits.end());
  if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) {
    throw_user_error("the model's output is not finite: its training has diverged");
  }
  if (choice.never >= 0) values[static_cast<size_t>(choice.never)] = -INFINITY;
  const auto likeliest = std::ranges::max_element(values);
  if (choice.temperature == 0) return static_cast<int32_t>(likeliest - values.begin());
  const double most = *likeliest;
  double sum = 0;
  for (double& v : values) sum += v = std::exp((v - most) / choice.temperature);
  const double wanted = static_cast<double>(choice.uniform) * sum;
  double below = 0;
  int32_t word = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;  // rounding can leave `wanted` >= the sum, so `word` must be a possible one
    word = static_cast<int32_t>(i);
    below += values[i];
    if (wanted < below) break;
  }
  return word;
}

}  // namespace dgc
