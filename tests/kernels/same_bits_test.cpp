// Ops whose result is defined to the bit: elementwise arithmetic in one order. Every backend must give the CPU's.
#include <catch.hpp>
#include <functional>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"
#include "tests/support/all_of.h"

using namespace dgc;

namespace {

using Op = std::function<void(Backend&, const OnDevice& x, const OnDevice& y, const OnDevice& z)>;

// Three tensors of n numbers each, then op on them.
std::vector<std::vector<float>> after(Backend& backend, int64_t n, const Op& op) {
  const OnDevice x(backend, random_floats(n, 1)), y(backend, random_floats(n, 2)), z(backend, random_floats(n, 3));
  op(backend, x, y, z);
  return {x.host(), y.host(), z.host()};
}

void compare(int64_t n, const Op& op) {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name(), n);
  CHECK(after(*backend, n, op) == after(*make_cpu_backend(1), n, op));
}

}  // namespace

TEST_CASE("same bits everywhere: derivatives of activations", "[kernels]") {
  const auto kind = GENERATE(from_range(test::all_of<Activation>()));
  compare(GENERATE(31, 4097), [kind](Backend& b, const OnDevice& x, const OnDevice& y, const OnDevice& z) {
    b.activation_backward(kind, x, y, z);
  });
}

TEST_CASE("same bits everywhere: dropout", "[kernels]") {
  compare(GENERATE(1, 4, 1023), [](Backend& b, const OnDevice& x, const OnDevice& y, const OnDevice&) {
    b.dropout_forward({.numel = x.view().numel(), .p = 0.3f, .seed = 1, .stream = 2, .first = 3}, x, y);
  });
}

TEST_CASE("same bits everywhere: global mean", "[kernels]") {
  const int64_t channels = GENERATE(1, 5, 64);
  const GlobalPoolArgs args{.batch = 3, .spatial = 49, .channels = channels};
  compare(3 * 49 * channels, [=](Backend& b, const OnDevice& x, const OnDevice& y, const OnDevice& z) {
    b.global_pool_forward(args, x, y);
    b.global_pool_backward(args, y, {z.view().data, {3 * 49 * channels}});
  });
}

TEST_CASE("same bits everywhere: shortcut and transpose", "[kernels]") {
  const int64_t in_c = GENERATE(3, 16), out_c = GENERATE(16, 32), stride = GENERATE(1, 2, 3);
  const ShortcutArgs args{.batch = 2, .in_h = 7, .in_w = 5, .in_c = in_c, .out_c = out_c, .stride = stride};
  const int64_t n = 2 * 7 * 5 * out_c;
  compare(n, [=](Backend& b, const OnDevice& x, const OnDevice& y, const OnDevice& z) {
    b.shortcut_forward(args, x, y);
    b.shortcut_backward(args, y, z);
    b.transpose({.outer = 2, .inner = 1, .rows = 35, .columns = out_c}, y, x);
    b.transpose({.outer = 2, .inner = 1, .rows = out_c, .columns = 35}, z, y);
  });
}

TEST_CASE("same bits everywhere: pooling", "[kernels]") {
  const auto kind = GENERATE(PoolKind::max, PoolKind::average);
  const int64_t channels = GENERATE(3, 16);
  const PoolArgs args{kind, 2, 8, 7, channels, 3, 2, 2, 1, 1, 1};
  compare(2 * 8 * 8 * channels, [=](Backend& b, const OnDevice& x, const OnDevice& y, const OnDevice& z) {
    const Buffer saved(b.device(), args.saved_bytes());
    const View kept{saved.data(), {static_cast<int64_t>(saved.bytes())}};
    b.pool_forward(args, x, y, kept);
    b.pool_backward(args, y, kept, z);
  });
}

TEST_CASE("same bits everywhere: local response normalisation with square roots", "[kernels]") {
  const int64_t channels = GENERATE(1, 3, 96, 300), size = GENERATE(1, 2, 5);
  const LrnArgs args{.batch = 1, .in_h = 2, .in_w = 3, .channels = channels, .size = size, .alpha = 2, .k = 1.5f};
  compare(6 * channels, [=](Backend& b, const OnDevice& x, const OnDevice& y, const OnDevice& z) {
    b.lrn_backward(args, x, y, z);
    b.lrn_forward(args, x, y);
  });
}

TEST_CASE("same bits everywhere: batch normalisation in evaluation", "[kernels]") {
  const int64_t channels = GENERATE(3, 16);
  const bool relu = GENERATE(false, true);
  const BatchNormArgs args{.rows = 100, .channels = channels, .relu = relu, .residual = true};
  compare(100 * channels, [=](Backend& b, const OnDevice& x, const OnDevice& y, const OnDevice& z) {
    const OnDevice scale(b, random_floats(channels, 4)), var(b, random_floats(channels, 5, 0.1f, 2));
    b.batch_norm_inference(args, x, y, scale, scale, scale, var, z);
  });
}

TEST_CASE("a GPU's results do not depend on the order in which its threads run", "[kernels]") {
  const int64_t channels = GENERATE(3, 20), rows = 2100, samples = 40;
  const auto run = [&](uint64_t seed) {
    EmulatedBackend backend(seed);
    const OnDevice x(backend, random_floats(rows * channels, 1)), scale(backend, random_floats(channels, 2));
    const OnDevice y(backend, zeros(rows * channels)), mean(backend, zeros(channels)), var(backend, zeros(channels));
    const OnDevice dy(backend, random_floats(rows * channels, 3)), dx(backend, zeros(rows * channels));
    const OnDevice dscale(backend, zeros(channels)), dshift(backend, zeros(channels));
    const BatchNormArgs args{.rows = rows, .channels = channels, .relu = true};
    const OnDevice saved(backend, zeros(static_cast<int64_t>(args.saved_bytes() / sizeof(float))));
    backend.batch_norm_forward(args, x, {}, scale, scale, mean, var, y, saved);
    backend.batch_norm_backward(args, x, y, scale, saved, dy, dx, dscale, dshift);
    const ValuesOnDevice<double> stats(backend, {0, 0, 0});
    const ValuesOnDevice<int32_t> labels(backend, std::vector<int32_t>(samples, 1));
    backend.softmax_cross_entropy({samples, channels}, x, {labels.data(), {samples}, DType::i32}, dy, stats.data());
    return std::pair(std::vector{y.host(), mean.host(), var.host(), dx.host(), dscale.host(), dshift.host(), dy.host()},
                     stats.host());
  };
  CHECK(run(1) == run(1000));
}
