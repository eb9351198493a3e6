#include <catch.hpp>
#include <limits>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

struct PoolTruth {
  std::vector<float> y, dx;
};

// Plain loops, one output at a time.
PoolTruth pool(const PoolArgs& a, const std::vector<float>& x, const std::vector<float>& dy) {
  PoolTruth t{std::vector<float>(dy.size()), std::vector<float>(x.size())};
  const float share = 1.f / static_cast<float>(a.kernel_h * a.kernel_w);
  for (size_t i = 0; i < dy.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    const int64_t c = rest % a.channels, ow = (rest /= a.channels) % a.out_w(), oh = (rest /= a.out_w()) % a.out_h();
    const int64_t n = rest / a.out_h();
    float best = -std::numeric_limits<float>::infinity(), sum = 0;
    size_t winner = 0;
    for (int64_t kh = 0; kh < a.kernel_h; ++kh) {
      for (int64_t kw = 0; kw < a.kernel_w; ++kw) {
        const int64_t h = oh * a.stride_h - a.pad_h + kh, w = ow * a.stride_w - a.pad_w + kw;
        if (h < 0 || h >= a.in_h || w < 0 || w >= a.in_w) continue;
        const auto at = static_cast<size_t>(((n * a.in_h + h) * a.in_w + w) * a.channels + c);
        if (x[at] > best) best = x[at], winner = at;
        sum += share * x[at];
        if (a.kind == PoolKind::average) t.dx[at] += share * dy[i];
      }
    }
    t.y[i] = a.kind == PoolKind::max ? best : sum;
    if (a.kind == PoolKind::max) t.dx[winner] += dy[i];
  }
  return t;
}

}  // namespace

TEST_CASE("pooling matches plain loops, forward and backward", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto kind = GENERATE(PoolKind::max, PoolKind::average);
  const auto channels = GENERATE(1, 16, 17);
  // {kind, batch, in_h, in_w, channels, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w}
  const auto args = GENERATE_COPY(PoolArgs{kind, 2, 8, 8, channels, 2, 2, 2, 2, 0, 0},    // no overlap
                                  PoolArgs{kind, 2, 13, 13, channels, 3, 3, 2, 2, 0, 0},  // AlexNet's
                                  PoolArgs{kind, 1, 8, 7, channels, 3, 3, 2, 2, 1, 1},    // ResNet's
                                  PoolArgs{kind, 3, 5, 6, channels, 3, 2, 1, 2, 1, 0});
  CAPTURE(backend->name(), channels, args.in_h, args.kernel_h, args.pad_h);
  const auto x = random_floats(args.batch * args.in_h * args.in_w * args.channels, 1);
  const auto dy = random_floats(args.batch * args.out_h() * args.out_w() * args.channels, 2);
  const PoolTruth truth = pool(args, x, dy);

  const OnDevice tx(*backend, x), tdy(*backend, dy), y(*backend, dy), dx(*backend, x);
  const Buffer saved(backend->device(), args.saved_bytes());
  backend->pool_forward(args, tx, y, {saved.data(), {static_cast<int64_t>(saved.bytes())}});
  backend->pool_backward(args, tdy, ConstView(saved.data(), {static_cast<int64_t>(saved.bytes())}), dx);
  CHECK(worst_error(y.host(), truth.y) < 1e-6);
  CHECK(worst_error(dx.host(), truth.dx) < 1e-6);

  const OnDevice evaluated(*backend, dy);
  backend->pool_forward(args, tx, evaluated, {});
  CHECK(evaluated.host() == y.host());
}

TEST_CASE("a NaN passes through max pooling", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const OnDevice x(*backend, {1, nan, 3, 2}), y(*backend, zeros(1));
  backend->pool_forward({PoolKind::max, 1, 2, 2, 1, 2, 2, 2, 2, 0, 0}, x, y, {});
  CHECK(std::isnan(y.host()[0]));
}

TEST_CASE("pooling in 16 bits: the maximum is exact, sums are rounded once", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const DType type = GENERATE(DType::f16, DType::bf16);
  const auto kind = GENERATE(PoolKind::max, PoolKind::average);
  const auto channels = GENERATE(3, 8, 24);
  const PoolArgs args{kind, 2, 9, 8, channels, 3, 3, 2, 2, 1, 1};
  CAPTURE(backend->name(), static_cast<int>(type), static_cast<int>(kind), channels);
  const int64_t inputs = args.batch * args.in_h * args.in_w * channels;
  const int64_t outputs = args.batch * args.out_h() * args.out_w() * channels;
  const OnDevice x(*backend, random_floats(inputs, 1), type), dy(*backend, random_floats(outputs, 2), type);
  const OnDevice y(*backend, zeros(outputs), type), dx(*backend, zeros(inputs), type);
  const PoolTruth truth = pool(args, x.host(), dy.host());
  const Buffer saved(backend->device(), args.saved_bytes());
  backend->pool_forward(args, x, y, {saved.data(), {static_cast<int64_t>(saved.bytes())}});
  backend->pool_backward(args, dy, ConstView(saved.data(), {static_cast<int64_t>(saved.bytes())}), dx);
  if (kind == PoolKind::max) CHECK(y.host() == truth.y);
  CHECK(worst_error(y.host(), truth.y) < rounding(type));
  CHECK(worst_error(dx.host(), truth.dx) < rounding(type));
}
