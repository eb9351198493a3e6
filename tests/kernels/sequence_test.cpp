#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

constexpr auto kOrders = {SequenceOrder::steps_first, SequenceOrder::streams_first};

// Five streams of up to seven steps, two frames to a step: 7, 4, 0, 1 and 6 steps, and one length beyond the padding.
const std::vector<int32_t> kLengths = {14, 7, 0, 1, 11, 99};
const std::vector<int64_t> kValid = {7, 4, 0, 1, 6, 7};

struct Sequences {
  SequenceArgs args;
  ValuesOnDevice<int32_t> on_device;

  Sequences(Backend& backend, SequenceOrder order, int64_t width)
      : args{.order = order, .steps = 7, .streams = 6, .width = width, .frames_per_step = 2},
        on_device(backend, kLengths) {}

  ConstView lengths() const { return {on_device.data(), {6}, DType::i32}; }
  int64_t numel() const { return 7 * 6 * args.width; }
  size_t at(int64_t stream, int64_t step, int64_t i = 0) const {
    const int64_t frame = args.order == SequenceOrder::steps_first ? step * 6 + stream : stream * 7 + step;
    return static_cast<size_t>(frame * args.width + i);
  }
  // body(stream, step, whether it is valid)
  template <typename Body>
  void each_step(const Body& body) const {
    for (int64_t s = 0; s < 6; ++s) {
      for (int64_t t = 0; t < 7; ++t) body(s, t, t < kValid[static_cast<size_t>(s)]);
    }
  }
};

}  // namespace

TEST_CASE("masking by length", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto order = GENERATE(from_range(kOrders));
  const int64_t width = GENERATE(1, 8, 65);
  const auto type = GENERATE(DType::f32, DType::f16);
  if (!backend->supports(type)) return;
  CAPTURE(backend->name(), static_cast<int>(order), width);
  const Sequences sequences(*backend, order, width);
  auto expected = random_floats(sequences.numel(), 1);
  const OnDevice x(*backend, expected, type), y(*backend, zeros(sequences.numel()), type);
  expected = x.host();
  sequences.each_step([&](int64_t s, int64_t t, bool valid) {
    for (int64_t i = 0; i < width && !valid; ++i) expected[sequences.at(s, t, i)] = 0;
  });
  backend->sequence_mask(sequences.args, sequences.lengths(), x, y);
  CHECK(y.host() == expected);
  backend->sequence_mask(sequences.args, sequences.lengths(), x, x);  // in place
  CHECK(x.host() == expected);
}

TEST_CASE("reversing each stream from its own end", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto order = GENERATE(from_range(kOrders));
  const int64_t width = GENERATE(1, 8, 65);
  CAPTURE(backend->name(), static_cast<int>(order), width);
  const Sequences sequences(*backend, order, width);
  const auto from = random_floats(sequences.numel(), 2);
  std::vector<float> expected(from.size());
  sequences.each_step([&](int64_t s, int64_t t, bool valid) {
    const int64_t last = kValid[static_cast<size_t>(s)] - 1;
    for (int64_t i = 0; i < width && valid; ++i) expected[sequences.at(s, t, i)] = from[sequences.at(s, last - t, i)];
  });
  const OnDevice x(*backend, from), y(*backend, std::vector<float>(from.size(), NAN));
  backend->sequence_reverse(sequences.args, sequences.lengths(), x, y);
  CHECK(y.host() == expected);
}

TEST_CASE("transpose swaps the outer and the inner two axes", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t outer = GENERATE(1, 3), inner = GENERATE(1, 5), rows = GENERATE(1, 4), columns = GENERATE(1, 33);
  CAPTURE(backend->name(), outer, inner, rows, columns);
  const auto from = random_floats(outer * inner * rows * columns, 3);
  std::vector<float> expected;
  for (int64_t j = 0; j < inner; ++j) {
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          expected.push_back(from[static_cast<size_t>(((i * inner + j) * rows + r) * columns + c)]);
        }
      }
    }
  }
  const OnDevice x(*backend, from), y(*backend, zeros(outer * inner * rows * columns));
  backend->transpose({.outer = outer, .inner = inner, .rows = rows, .columns = columns}, x, y);
  CHECK(y.host() == expected);
}

// Against batch_norm on the valid rows alone, which is checked by itself.
TEST_CASE("sequence norm is batch norm of the valid rows", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto order = GENERATE(from_range(kOrders));
  const int64_t channels = GENERATE(1, 3, 40), rows_of_step = GENERATE(1, 5);
  CAPTURE(backend->name(), static_cast<int>(order), channels, rows_of_step);
  const Sequences sequences(*backend, order, channels * rows_of_step);
  const int64_t width = sequences.args.width;
  auto x = random_floats(sequences.numel(), 4, 2, 5), dy = random_floats(sequences.numel(), 5);
  std::vector<float> packed_x, packed_dy;
  sequences.each_step([&](int64_t s, int64_t t, bool valid) {
    for (int64_t i = 0; i < width; ++i) {
      const size_t at = sequences.at(s, t, i);
      if (valid) {
        packed_x.push_back(x[at]);
        packed_dy.push_back(dy[at]);
      } else {
        x[at] = dy[at] = NAN;  // nobody may read it
      }
    }
  });
  const auto run = [&](auto&& forward, auto&& backward, const std::vector<float>& in, const std::vector<float>& out,
                       int64_t saved_floats) {
    const OnDevice from(*backend, in), g(*backend, out), scale(*backend, random_floats(channels, 6)),
        shift(*backend, random_floats(channels, 7)), mean(*backend, random_floats(channels, 8)),
        var(*backend, std::vector<float>(static_cast<size_t>(channels), 2.f)), y(*backend, in), dx(*backend, in),
        dscale(*backend, random_floats(channels, 9)), dshift(*backend, random_floats(channels, 10)),
        saved(*backend, zeros(saved_floats));
    forward(from, scale, shift, mean, var, y, saved);
    backward(from, y, scale, saved, g, dx, dscale, dshift);
    return std::vector{y.host(), dx.host(), mean.host(), var.host(), dscale.host(), dshift.host()};
  };
  const SequenceNormArgs args{.sequences = sequences.args, .channels = channels};
  const auto masked = run(
      [&](const OnDevice& from, View scale, View shift, View mean, View var, View y, View saved) {
        backend->sequence_norm_forward(args, sequences.lengths(), from, scale, shift, mean, var, y, saved);
      },
      [&](const OnDevice& from, View, View scale, View saved, View g, View dx, View dscale, View dshift) {
        backend->sequence_norm_backward(args, sequences.lengths(), from, scale, saved, g, dx, dscale, dshift);
      },
      x, dy, 2 * channels);
  const BatchNormArgs all{.rows = static_cast<int64_t>(packed_x.size()) / channels, .channels = channels};
  const auto packed =
      run([&](const OnDevice& from, View scale, View shift, View mean, View var, View y,
              View saved) { backend->batch_norm_forward(all, from, {}, scale, shift, mean, var, y, saved); },
          [&](const OnDevice& from, View y, View scale, View saved, View g, View dx, View dscale, View dshift) {
            backend->batch_norm_backward(all, from, y, scale, saved, g, dx, dscale, dshift);
          },
          packed_x, packed_dy, static_cast<int64_t>(all.saved_bytes() / sizeof(float)));
  for (const size_t which : {0, 1}) {
    std::vector<float> valid_ones;
    sequences.each_step([&](int64_t s, int64_t t, bool valid) {
      for (int64_t i = 0; i < width; ++i) {
        const float value = masked[which][sequences.at(s, t, i)];
        if (valid) valid_ones.push_back(value);
        if (!valid && value != 0) FAIL_CHECK("stream " << s << ", step " << t << ": " << value);
      }
    });
    CAPTURE(which);
    CHECK(worst_error(valid_ones, packed[which]) < 1e-4);
  }
  for (const size_t which : {2, 3, 4, 5}) {
    CAPTURE(which);
    CHECK(worst_error(masked[which], packed[which]) < 1e-4);
  }
}

TEST_CASE("sequence norm of streams without a valid step leaves the statistics alone", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const SequenceNormArgs args{.sequences = {.steps = 3, .streams = 2, .width = 2}, .channels = 2};
  const ValuesOnDevice<int32_t> lengths(*backend, {0, 0});
  const OnDevice x(*backend, random_floats(12, 1)), one(*backend, {1, 1}), mean(*backend, {3, 4}),
      var(*backend, {5, 6}), y(*backend, random_floats(12, 2)), dx(*backend, random_floats(12, 3)),
      saved(*backend, zeros(4)), dscale(*backend, {1, 2}), dshift(*backend, {3, 4});
  const ConstView length{lengths.data(), {2}, DType::i32};
  backend->sequence_norm_forward(args, length, x, one, one, mean, var, y, saved);
  backend->sequence_norm_backward(args, length, x, one, saved, x, dx, dscale, dshift);
  CHECK(y.host() == zeros(12));
  CHECK(dx.host() == zeros(12));
  CHECK(mean.host() == std::vector<float>{3, 4});
  CHECK(var.host() == std::vector<float>{5, 6});
  CHECK(dscale.host() == std::vector<float>{1, 2});
  CHECK(dshift.host() == std::vector<float>{3, 4});
}

TEST_CASE("lookahead by its formula", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t steps = GENERATE(1, 6), streams = GENERATE(1, 3), channels = GENERATE(1, 20, 40),
                context = GENERATE(1, 3, 9);
  CAPTURE(backend->name(), steps, streams, channels, context);
  const int64_t n = steps * streams * channels;
  const auto x = random_floats(n, 1), w = random_floats(channels * context, 2), dy = random_floats(n, 3),
             start = random_floats(channels * context, 4);
  std::vector<double> y(x.size()), dx(x.size()), dw(start.begin(), start.end());
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t k = 0; k < context && t + k < steps; ++k) {
      for (int64_t i = 0; i < streams * channels; ++i) {
        const auto to = static_cast<size_t>(t * streams * channels + i),
                   from = static_cast<size_t>((t + k) * streams * channels + i),
                   weight = static_cast<size_t>(i % channels * context + k);
        y[to] += double{w[weight]} * double{x[from]};
        dx[from] += double{w[weight]} * double{dy[to]};
        dw[weight] += double{dy[to]} * double{x[from]};
      }
    }
  }
  const LookaheadArgs args{.steps = steps, .streams = streams, .channels = channels, .context = context};
  const OnDevice x_(*backend, x), w_(*backend, w), dy_(*backend, dy), dw_(*backend, start);
  const OnDevice y_(*backend, std::vector<float>(x.size(), NAN)), dx_(*backend, std::vector<float>(x.size(), NAN));
  backend->lookahead_forward(args, x_, w_, y_);
  backend->lookahead_backward(args, x_, w_, dy_, dx_, dw_);
  CHECK(worst_error(y_.host(), y) < 1e-6);
  CHECK(worst_error(dx_.host(), dx) < 1e-6);
  CHECK(worst_error(dw_.host(), dw) < 1e-5);
}
