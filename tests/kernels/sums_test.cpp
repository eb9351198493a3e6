#include <catch.hpp>
#include <cstring>

#include "kernels/sum_order.h"
#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

double sum_squares(Backend& backend, const std::vector<float>& x) {
  const ValuesOnDevice<double> sum(backend, {7});
  backend.sum_squares(OnDevice(backend, x), sum.data());
  return sum.host()[0];
}

void fold(std::vector<double>& lanes) {
  for (size_t half = lanes.size() / 2; half >= 1; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
}

// The order of kernels/sum_order.h, word for word.
double in_order(const std::vector<float>& x) {
  std::vector<double> total(kSumChunkLanes);
  for (size_t first = 0; first < x.size(); first += kSumChunk) {
    std::vector<double> lanes(kSumLanes);
    for (size_t i = first; i < std::min(x.size(), first + kSumChunk); ++i) {
      lanes[(i - first) % kSumLanes] += static_cast<double>(x[i]) * x[i];
    }
    fold(lanes);
    total[first / kSumChunk % kSumChunkLanes] += lanes[0];
  }
  fold(total);
  return total[0];
}

}  // namespace

TEST_CASE("the sum of squares has the bits of its defined order", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(0, 1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 65536, 65537, 100000);
  CAPTURE(backend->name(), n);
  const auto x = random_floats(n, 1);
  CHECK(sum_squares(*backend, x) == in_order(x));
}

TEST_CASE("more chunks than lanes go round", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto x = random_floats(kSumChunk * (kSumChunkLanes + 1) + 5, 1);
  CHECK(sum_squares(*backend, x) == in_order(x));
}

TEST_CASE("the sum of squares is finite exactly when every element is", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto at = GENERATE(size_t{0}, size_t{16}, size_t{4999});
  const auto bad = GENERATE(NAN, INFINITY, -INFINITY);
  std::vector<float> x(5000, 3e38f);
  CHECK(std::isfinite(sum_squares(*backend, x)));  // far beyond fp32 when squared
  x[at] = bad;
  CHECK_FALSE(std::isfinite(sum_squares(*backend, x)));
}

TEST_CASE("an ordered sum adds from the first to the last, however many there are", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const size_t count = GENERATE(1, 2, 63, 64, 65, 130);
  const int64_t n = GENERATE(0, 1, 1023, 1025);
  const int64_t first = GENERATE(0, 1);  // an address that packs fit, and one that they do not
  CAPTURE(backend->name(), count, n, first);
  std::vector<OnDevice> x;
  std::vector<const float*> pointers;
  auto expected = zeros(n);
  for (size_t i = 0; i < count; ++i) {
    const auto values = random_floats(n + first, static_cast<unsigned>(i));
    for (int64_t j = 0; j < n; ++j) {
      float& sum = expected[static_cast<size_t>(j)];
      sum = i == 0 ? values[static_cast<size_t>(j + first)] : sum + values[static_cast<size_t>(j + first)];
    }
    x.emplace_back(*backend, values);
    pointers.push_back(x.back().view().f32() + first);
  }
  const OnDevice out(*backend, std::vector<float>(static_cast<size_t>(n + 2), 7.f));
  backend->ordered_sum(pointers, out.view().f32() + first, n);
  expected.insert(expected.begin(), static_cast<size_t>(first), 7.f);
  expected.resize(static_cast<size_t>(n + 2), 7.f);
  CHECK(out.host() == expected);
}
