#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

// The definition in double, for one pixel.
std::vector<double> normalised(const LrnArgs& a, const std::vector<double>& x) {
  std::vector<double> y;
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t c = 0; c < n; ++c) {
    double sum = 0;
    for (int64_t j = std::max<int64_t>(0, c - a.size / 2); j <= std::min(n - 1, c + (a.size - 1) / 2); ++j) {
      sum += x[static_cast<size_t>(j)] * x[static_cast<size_t>(j)];
    }
    y.push_back(x[static_cast<size_t>(c)] * std::pow(a.k + a.alpha / static_cast<double>(a.size) * sum, -a.beta));
  }
  return y;
}

}  // namespace

// AddressSanitizer sees what would lie beyond the scratch memory.
TEST_CASE("local response normalisation has room for all threads, whoever set their number", "[kernels]") {
  const int64_t channels = 1000;
  const LrnArgs args{2, 8, 1, channels};
  const auto run = [&](int threads) {
    const auto backend = make_cpu_backend(1);
    const auto sets_threads = make_cpu_backend(threads);
    const OnDevice x(*backend, random_floats(16 * channels, 1)), dx(*backend, zeros(16 * channels));
    backend->lrn_backward(args, x, x, dx);
    return std::pair(dx.host(), backend->device()->peak_bytes());
  };
  const auto [dx, bytes] = run(1);
  const auto [same, more_bytes] = run(3);
  CHECK(same == dx);
  CHECK(more_bytes >= bytes + size_t{2} * 4 * channels * sizeof(float));
}

TEST_CASE("local response normalisation matches its formula and central differences", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t channels = GENERATE(1, 4, 12, 17), size = GENERATE(1, 2, 5);
  const float beta = GENERATE(0.75f, 0.5f);
  CAPTURE(backend->name(), channels, size, beta);
  // A large alpha, so that the neighbours matter.
  const LrnArgs args{1, 1, 2, channels, size, /*alpha=*/2.f, beta, /*k=*/1.5f};
  const auto x = random_floats(2 * channels, 1), dy = random_floats(2 * channels, 2);
  const OnDevice tx(*backend, x), tdy(*backend, dy), ty(*backend, dy), tdx(*backend, dy);
  backend->lrn_forward(args, tx, ty);
  backend->lrn_backward(args, tx, tdy, tdx);

  std::vector<double> y, dx;
  for (int64_t pixel = 0; pixel < 2; ++pixel) {
    std::vector<double> own(x.begin() + pixel * channels, x.begin() + (pixel + 1) * channels);
    for (const double v : normalised(args, own)) y.push_back(v);
    for (size_t c = 0; c < own.size(); ++c) {
      const double keep = own[c], step = 1e-5;
      double slope = 0;
      for (const double sign : {1.0, -1.0}) {
        own[c] = keep + sign * step;
        const auto moved = normalised(args, own);
        for (size_t j = 0; j < own.size(); ++j) {
          slope += sign * moved[j] * dy[static_cast<size_t>(pixel * channels) + j] / (2 * step);
        }
      }
      own[c] = keep;
      dx.push_back(slope);
    }
  }
  CHECK(worst_error(ty.host(), y) < 1e-6);
  CHECK(worst_error(tdx.host(), dx) < 2e-6);
}
