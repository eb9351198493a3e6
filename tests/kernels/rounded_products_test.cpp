// make_cpu_backend(threads, Fp32Math::bf16): what products read is rounded to bf16, and nothing else is. So the results
// are those of exact products of rounded factors, but for the order of sums.
#include <catch.hpp>

#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

using Results = std::vector<std::vector<float>>;

std::vector<float> rounded(const std::vector<float>& values) {
  return OnDevice(*make_cpu_backend(1), values, DType::bf16).host();
}

void check_same(const Results& seen, const Results& expected) {
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    CHECK(worst_error(seen[i], doubles(expected[i])) < 1e-5);
  }
}

bool can_multiply() {
  if (!cpu_multiplies_bf16()) WARN("skipped: this processor has neither AVX-512 BF16 nor AMX");
  return cpu_multiplies_bf16();
}

}  // namespace

TEST_CASE("a convolution with bf16 rounds images, weights and gradients", "[kernels]") {
  if (!can_multiply()) return;
  const auto args =
      GENERATE(Conv2dArgs{2, 7, 5, 1, 3, 3, 3, 1, 1, 1, 1, 1}, Conv2dArgs{8, 16, 16, 16, 32, 3, 3, 1, 1, 1, 1, 1},
               Conv2dArgs{3, 5, 5, 17, 15, 1, 1, 1, 1, 0, 0, 1}, Conv2dArgs{2, 9, 6, 5, 4, 3, 2, 2, 1, 1, 0, 1},
               Conv2dArgs{2, 6, 6, 4, 6, 3, 3, 1, 1, 1, 1, 2}, Conv2dArgs{2, 6, 6, 16, 16, 3, 3, 1, 1, 1, 1, 16},
               Conv2dArgs{1, 23, 23, 3, 16, 11, 11, 4, 4, 2, 2, 1}, Conv2dArgs{1, 64, 64, 2, 3, 15, 15, 2, 2, 7, 0, 1});
  CAPTURE(args.in_h, args.in_c, args.out_c, args.kernel_h, args.groups);
  const auto x = random_floats(args.batch * args.in_h * args.in_w * args.in_c, 1);
  const auto w = random_floats(args.out_c * (args.in_c / args.groups) * args.kernel_h * args.kernel_w, 2);
  const auto b = random_floats(args.out_c, 3);
  const auto dy = random_floats(args.batch * args.out_h() * args.out_w() * args.out_c, 4);
  const auto results = [&](Fp32Math math, const std::vector<float>& image, const std::vector<float>& weights,
                           const std::vector<float>& gradient) {
    const auto backend = make_cpu_backend(2, math);
    const OnDevice tx(*backend, image), tw(*backend, weights), tb(*backend, b), tdy(*backend, gradient);
    const OnDevice y(*backend, dy), dx(*backend, x), dw(*backend, w), db(*backend, b);
    backend->conv2d_forward(args, tx, tw, tb, y);
    backend->conv2d_backward_data(args, tdy, tw, dx);
    backend->conv2d_backward_weights(args, tx, tdy, dw, db);
    return Results{y.host(), dx.host(), dw.host(), db.host()};
  };
  const Results seen = results(Fp32Math::bf16, x, w, dy);
  Results expected = results(Fp32Math::exact, rounded(x), rounded(w), rounded(dy));
  std::vector<double> sums = doubles(b);
  for (size_t i = 0; i < dy.size(); ++i) sums[i % sums.size()] += double{dy[i]};
  expected.back().assign(sums.begin(), sums.end());  // the bias's gradient is no product, so it is not rounded
  check_same(seen, expected);
  CHECK(seen == results(Fp32Math::bf16, x, w, dy));  // the same bits every time
}

TEST_CASE("a linear layer with bf16 rounds inputs, weights and gradients", "[kernels]") {
  if (!can_multiply()) return;
  const int64_t rows = GENERATE(1, 33), in = GENERATE(1, 17, 64), out = GENERATE(1, 10, 65);
  CAPTURE(rows, in, out);
  const auto x = random_floats(rows * in, 1), w = random_floats(out * in, 2), b = random_floats(out, 3);
  const auto dy = rounded(random_floats(rows * out, 4));  // the bias's gradient is no product, so it is not rounded
  const auto results = [&](Fp32Math math, const std::vector<float>& input, const std::vector<float>& weights) {
    const auto backend = make_cpu_backend(2, math);
    const OnDevice tx(*backend, input), tw(*backend, weights), tb(*backend, b), tdy(*backend, dy);
    const OnDevice y(*backend, dy), dx(*backend, x), dw(*backend, w), db(*backend, b);
    backend->linear_forward({rows, in, out}, tx, tw, tb, y);
    backend->linear_backward({rows, in, out}, tx, tw, tdy, dx, dw, db);
    return Results{y.host(), dx.host(), dw.host(), db.host()};
  };
  check_same(results(Fp32Math::bf16, x, w), results(Fp32Math::exact, rounded(x), rounded(w)));
}

TEST_CASE("a recurrent layer with bf16 rounds the products of many steps", "[kernels]") {
  if (!can_multiply()) return;
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru);
  const RnnArgs args{.cell = cell, .steps = 5, .batch = 3, .in = 17, .hidden = 20};
  const auto x = random_floats(args.steps * args.batch * args.in, 1);
  const auto w_ih = random_floats(args.gates() * args.in, 2, -0.3f, 0.3f);
  const auto w_hh = random_floats(args.gates() * args.hidden, 3, -0.3f, 0.3f);
  const auto bias = random_floats(args.gates(), 4);
  const auto dy = random_floats(args.steps * args.batch * args.hidden, 5);
  const auto results = [&](Fp32Math math, const std::vector<float>& input, const std::vector<float>& weights) {
    const auto backend = make_cpu_backend(2, math);
    const std::vector<float> zeros(std::max(w_ih.size(), w_hh.size()));
    const OnDevice tx(*backend, input), t_ih(*backend, weights), t_hh(*backend, w_hh), tb(*backend, bias);
    const OnDevice y(*backend, dy), tdy(*backend, dy), dx(*backend, x);
    const OnDevice d_ih(*backend, zeros), d_hh(*backend, zeros), db_ih(*backend, zeros), db_hh(*backend, zeros);
    const OnDevice saved(*backend, std::vector<float>(backend->rnn_saved_bytes(args, DType::f32) / sizeof(float)));
    backend->rnn_forward(args, tx, {t_ih, t_hh, tb, tb}, {}, y, saved);
    Results all{y.host()};
    backend->rnn_backward(args, tx, {t_ih, t_hh, tb, tb}, y, saved, tdy, dx, {d_ih, d_hh, db_ih, db_hh});
    for (const OnDevice* gradient : {&dx, &d_ih, &d_hh, &db_ih, &db_hh}) all.push_back(gradient->host());
    return all;
  };
  const Results seen = results(Fp32Math::bf16, x, w_ih);
  const Results expected = results(Fp32Math::exact, rounded(x), rounded(w_ih));
  check_same({seen.front()}, {expected.front()});
  for (size_t i = 1; i < seen.size(); ++i) {  // backward rounds gradients of gates, which the other backend does not
    CAPTURE(i);
    CHECK(worst_error(seen[i], doubles(expected[i])) < 4 * rounding(DType::bf16));
  }
}
