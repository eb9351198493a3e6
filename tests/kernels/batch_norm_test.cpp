#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

struct NormCase {
  NormCase(int64_t rows, int64_t channels, bool relu, bool residual, float mean = 0)
      : args{.rows = rows, .channels = channels, .relu = relu, .residual = residual},
        x(random_floats(rows * channels, 1, mean - 1, mean + 1)),
        skip(random_floats(rows * channels, 2)),
        dy(random_floats(rows * channels, 3)),
        scale(random_floats(channels, 4, 0.5f, 2)),
        shift(random_floats(channels, 5)) {}

  size_t channel(size_t i) const { return i % scale.size(); }

  BatchNormArgs args;
  std::vector<float> x, skip, dy, scale, shift;
};

// The definition, in double.
struct NormTruth {
  explicit NormTruth(const NormCase& c)
      : mean(c.scale.size()), var(mean), h(c.x.size()), y(h), dx(h), dscale(mean), dshift(mean) {
    const auto n = static_cast<double>(c.args.rows);
    for (size_t i = 0; i < c.x.size(); ++i) mean[c.channel(i)] += c.x[i] / n;
    for (size_t i = 0; i < c.x.size(); ++i)
      var[c.channel(i)] += (c.x[i] - mean[c.channel(i)]) * (c.x[i] - mean[c.channel(i)]) / n;
    masked = c.dy;
    for (size_t i = 0; i < c.x.size(); ++i) {
      const size_t k = c.channel(i);
      h[i] = (c.x[i] - mean[k]) / std::sqrt(var[k] + c.args.eps);
      y[i] = h[i] * c.scale[k] + c.shift[k] + (c.args.residual ? c.skip[i] : 0);
      if (c.args.relu && y[i] <= 0) y[i] = 0, masked[i] = 0;
      dscale[k] += masked[i] * h[i];
      dshift[k] += masked[i];
    }
    for (size_t i = 0; i < c.x.size(); ++i) {
      const size_t k = c.channel(i);
      dx[i] = c.scale[k] / std::sqrt(var[k] + c.args.eps) * (masked[i] - dshift[k] / n - h[i] * dscale[k] / n);
    }
  }
  std::vector<double> mean, var, h, y, dx, dscale, dshift;
  std::vector<float> masked;
};

std::vector<float> saved_by(const BatchNormArgs& args) {
  return zeros(static_cast<int64_t>(args.saved_bytes() / sizeof(float)));
}

}  // namespace

TEST_CASE("batch normalisation matches its formula, forward and backward", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t rows = GENERATE(2, 17, 1000), channels = GENERATE(1, 15, 16, 33);
  const bool relu = GENERATE(false, true), residual = GENERATE(false, true);
  CAPTURE(backend->name(), rows, channels, relu, residual);
  const NormCase c(rows, channels, relu, residual);
  const NormTruth truth(c);

  const OnDevice x(*backend, c.x), skip(*backend, c.skip), scale(*backend, c.scale), shift(*backend, c.shift);
  const OnDevice y(*backend, c.dy), mean(*backend, std::vector<float>(c.scale.size(), 3.f));
  const OnDevice var(*backend, std::vector<float>(c.scale.size(), 5.f));
  const OnDevice saved(*backend, saved_by(c.args));
  backend->batch_norm_forward(c.args, x, residual ? ConstView(skip) : ConstView(), scale, shift, mean, var, y, saved);
  CHECK(worst_error(y.host(), truth.y) < 1e-5);

  std::vector<double> running_mean, running_var;
  const double n = static_cast<double>(rows);
  for (const double m : truth.mean) running_mean.push_back(0.9 * 3 + 0.1 * m);
  for (const double v : truth.var) running_var.push_back(0.9 * 5 + 0.1 * v * n / (n - 1));
  CHECK(worst_error(mean.host(), running_mean) < 1e-6);
  CHECK(worst_error(var.host(), running_var) < 1e-6);

  const OnDevice dy(*backend, c.dy), dx(*backend, c.x), dscale(*backend, c.scale), dshift(*backend, c.shift);
  backend->batch_norm_backward(c.args, x, y, scale, saved, dy, dx, dscale, dshift);
  CHECK(worst_error(dx.host(), truth.dx) < 1e-4);  // with two rows 1 / deviation is large
  if (residual) CHECK(dy.host() == truth.masked);  // in place: now it is also the gradient of the residual
  std::vector<double> expected_scale, expected_shift;
  for (size_t k = 0; k < c.scale.size(); ++k) {
    expected_scale.push_back(c.scale[k] + truth.dscale[k]);
    expected_shift.push_back(c.shift[k] + truth.dshift[k]);
  }
  CHECK(worst_error(dscale.host(), expected_scale) < 1e-5);
  CHECK(worst_error(dshift.host(), expected_shift) < 1e-5);
}

TEST_CASE("batch normalisation keeps its digits when the mean is far from zero", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const NormCase c(4096, 16, false, false, /*mean=*/1000);
  const NormTruth truth(c);
  const OnDevice x(*backend, c.x), scale(*backend, c.scale), shift(*backend, c.shift), y(*backend, c.dy);
  const OnDevice mean(*backend, zeros(16)), var(*backend, zeros(16)), saved(*backend, saved_by(c.args));
  backend->batch_norm_forward(c.args, x, {}, scale, shift, mean, var, y, saved);
  std::vector<double> unbiased;
  for (const double v : truth.var) unbiased.push_back(0.1 * v * 4096 / 4095);
  // x itself is known to 6e-5 here. The textbook E[x^2] - E[x]^2 in fp32 would be off by about 0.1.
  CHECK(worst_error(var.host(), unbiased) < 1e-5);
  CHECK(worst_error(y.host(), truth.y) < 1e-3);
}

TEST_CASE("batch normalisation in evaluation uses the running statistics", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice x(*backend, {1, 2, 3, 4}), skip(*backend, {0, 0, 10, -100}), y(*backend, zeros(4));
  const OnDevice scale(*backend, {2, 1}), shift(*backend, {0, 1}), mean(*backend, {1, 2}), var(*backend, {4, 1});
  backend->batch_norm_inference({.rows = 2, .channels = 2, .eps = 0}, x, {}, scale, shift, mean, var, y);
  CHECK(y.host() == std::vector<float>{0, 1, 2, 3});
  backend->batch_norm_inference({.rows = 2, .channels = 2, .eps = 0, .relu = true, .residual = true}, x, skip, scale,
                                shift, mean, var, y);
  CHECK(y.host() == std::vector<float>{0, 1, 12, 0});
}

TEST_CASE("batch normalisation in 16 bits rounds its outputs only", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const DType type = GENERATE(DType::f16, DType::bf16);
  const int64_t rows = GENERATE(63, 700), channels = GENERATE(3, 8, 72);  // one by one, and in packs of eight
  const bool relu = GENERATE(false, true), residual = GENERATE(false, true);
  CAPTURE(backend->name(), static_cast<int>(type), rows, channels, relu, residual);
  NormCase c(rows, channels, relu, residual, /*mean=*/3);
  const OnDevice x(*backend, c.x, type), skip(*backend, c.skip, type), dy(*backend, c.dy, type);
  c.x = x.host();
  c.skip = skip.host();
  c.dy = dy.host();
  const NormTruth truth(c);

  const OnDevice scale(*backend, c.scale), shift(*backend, c.shift), y(*backend, c.dy, type), dx(*backend, c.x, type);
  const OnDevice mean(*backend, zeros(channels)), var(*backend, zeros(channels));
  const OnDevice saved(*backend, saved_by(c.args));
  const OnDevice dscale(*backend, zeros(channels)), dshift(*backend, zeros(channels));
  backend->batch_norm_forward(c.args, x, residual ? ConstView(skip) : ConstView(), scale, shift, mean, var, y, saved);
  backend->batch_norm_backward(c.args, x, y, scale, saved, dy, dx, dscale, dshift);
  CHECK(worst_error(y.host(), truth.y) < rounding(type));
  CHECK(worst_error(dx.host(), truth.dx) < rounding(type));
  if (residual) CHECK(dy.host() == truth.masked);
  CHECK(worst_error(dscale.host(), truth.dscale) < 1e-5);
  CHECK(worst_error(dshift.host(), truth.dshift) < 1e-5);
}

TEST_CASE("batch normalisation without a wanted input gradient still sums the parameters'", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const NormCase c(100, 4, true, false);
  const NormTruth truth(c);
  const OnDevice x(*backend, c.x), scale(*backend, c.scale), shift(*backend, c.shift), y(*backend, c.dy);
  const OnDevice mean(*backend, zeros(4)), var(*backend, zeros(4)), saved(*backend, saved_by(c.args));
  const OnDevice dy(*backend, c.dy), dscale(*backend, zeros(4)), dshift(*backend, zeros(4));
  backend->batch_norm_forward(c.args, x, {}, scale, shift, mean, var, y, saved);
  backend->batch_norm_backward(c.args, x, y, scale, saved, dy, {}, dscale, dshift);
  CHECK(worst_error(dscale.host(), truth.dscale) < 1e-5);
  CHECK(worst_error(dshift.host(), truth.dshift) < 1e-5);
}

TEST_CASE("a NaN reaches the output and the running statistics of its channel alone", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  NormCase c(2000, 4, true, false);
  c.x[4 * 1234 + 2] = NAN;
  const OnDevice x(*backend, c.x), scale(*backend, c.scale), shift(*backend, c.shift), y(*backend, c.dy);
  const OnDevice mean(*backend, zeros(4)), var(*backend, zeros(4)), saved(*backend, saved_by(c.args));
  backend->batch_norm_forward(c.args, x, {}, scale, shift, mean, var, y, saved);
  for (const size_t channel : {0u, 1u, 2u, 3u}) {
    CAPTURE(backend->name(), channel);
    CHECK(std::isnan(y.host()[channel]) == (channel == 2));
    CHECK(std::isnan(mean.host()[channel]) == (channel == 2));
    CHECK(std::isnan(var.host()[channel]) == (channel == 2));
  }
}
