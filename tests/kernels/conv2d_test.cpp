#include <algorithm>
#include <catch.hpp>
#include <cmath>

#include "kernels/cpu/conv2d_products.h"
#include "tests/kernels/on_device.h"
#include "tests/support/backends.h"

using namespace dgc;

namespace {

// {batch, in_h, in_w, in_c, out_c, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, groups}
const Conv2dArgs kCases[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1},      {2, 7, 5, 1, 3, 3, 3, 1, 1, 1, 1, 1},
    {2, 8, 8, 3, 16, 3, 3, 1, 1, 1, 1, 1},     {1, 9, 9, 3, 8, 7, 7, 2, 2, 3, 3, 1},
    {1, 23, 23, 3, 16, 11, 11, 4, 4, 2, 2, 1}, {2, 6, 7, 16, 32, 3, 3, 2, 2, 1, 1, 1},
    {3, 5, 5, 17, 15, 1, 1, 1, 1, 0, 0, 1},    {2, 8, 8, 16, 16, 1, 1, 2, 2, 0, 0, 1},
    {1, 8, 8, 4, 4, 3, 3, 2, 2, 0, 0, 1},  // the last row and column are never read
    {2, 9, 6, 5, 4, 3, 2, 2, 1, 1, 0, 1},  // nothing square
    {2, 6, 6, 4, 6, 3, 3, 1, 1, 1, 1, 2},      {1, 5, 5, 32, 32, 3, 3, 1, 1, 1, 1, 2},
    {2, 6, 6, 16, 16, 3, 3, 1, 1, 1, 1, 16},   {1, 5, 5, 3, 3, 3, 3, 1, 1, 1, 1, 3},
    {1, 64, 64, 3, 16, 1, 1, 2, 2, 0, 0, 1},   {2, 64, 64, 8, 16, 1, 1, 2, 2, 0, 0, 1},
    {1, 64, 64, 2, 3, 15, 15, 2, 2, 7, 0, 1},  // so large a window over one image that oneDNN does not take NHWC
};

// More, for ConvProducts: rows of the input that no window reads, windows that are mostly padding, and so many images
// that one strip cannot have them all.
const Conv2dArgs kProductCases[] = {
    {2, 9, 9, 3, 4, 2, 2, 3, 3, 0, 0, 1},
    {3, 2, 3, 2, 5, 5, 5, 1, 1, 3, 3, 1},
    {2, 12, 40, 1, 4, 5, 21, 2, 2, 2, 0, 1},
    {7, 5, 90, 2, 3, 3, 9, 2, 1, 1, 4, 1},
};

// Calls visit(index in x, index in w, index in y) for every product of the convolution: its definition.
template <typename Visit>
void for_products(const Conv2dArgs& a, const Visit& visit) {
  const int64_t group_in = a.in_c / a.groups, group_out = a.out_c / a.groups;
  for (int64_t n = 0; n < a.batch; ++n)
    for (int64_t oh = 0; oh < a.out_h(); ++oh)
      for (int64_t ow = 0; ow < a.out_w(); ++ow)
        for (int64_t oc = 0; oc < a.out_c; ++oc)
          for (int64_t ic = 0; ic < group_in; ++ic)
            for (int64_t kh = 0; kh < a.kernel_h; ++kh)
              for (int64_t kw = 0; kw < a.kernel_w; ++kw) {
                const int64_t h = oh * a.stride_h - a.pad_h + kh, w = ow * a.stride_w - a.pad_w + kw;
                if (h < 0 || h >= a.in_h || w < 0 || w >= a.in_w) continue;
                const int64_t channel = oc / group_out * group_in + ic;
                visit(static_cast<size_t>(((n * a.in_h + h) * a.in_w + w) * a.in_c + channel),
                      static_cast<size_t>(((oc * group_in + ic) * a.kernel_h + kh) * a.kernel_w + kw),
                      static_cast<size_t>(((n * a.out_h() + oh) * a.out_w() + ow) * a.out_c + oc));
              }
}

// Numbers that a type holds exactly, so that only the results are rounded. The bias is added in fp32.
struct Data {
  Data(const Conv2dArgs& a, Backend& backend, DType type = DType::f32) {
    const auto draw = [&](int64_t n, unsigned seed) { return OnDevice(backend, random_floats(n, seed), type).host(); };
    x = draw(a.batch * a.in_h * a.in_w * a.in_c, 1);
    w = draw(a.out_c * (a.in_c / a.groups) * a.kernel_h * a.kernel_w, 2);
    b = random_floats(a.out_c, 3);
    dy = draw(a.batch * a.out_h() * a.out_w() * a.out_c, 4);
  }
  std::vector<float> x, w, b, dy;
};

// A result may be rounded on its way as well, while it is still larger than in the end.
double tolerance(DType type) { return 1e-5 + (type == DType::f32 ? 0 : 4 * rounding(type)); }

}  // namespace

TEST_CASE("a convolution is the sum over its window", "[kernels][libraries]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto args = GENERATE(from_range(std::begin(kCases), std::end(kCases)));
  const bool bias = GENERATE(false, true);
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  if (!backend->supports(type)) return;
  CAPTURE(backend->name(), type, args.in_h, args.in_c, args.out_c, args.kernel_h, args.groups, bias);
  const Data data(args, *backend, type);
  const OnDevice x(*backend, data.x, type), w(*backend, data.w), b(*backend, data.b), y(*backend, data.dy, type);

  std::vector<double> expected(data.dy.size());
  for (size_t i = 0; bias && i < expected.size(); ++i) expected[i] = data.b[i % data.b.size()];
  for_products(args,
               [&](size_t xi, size_t wi, size_t yi) { expected[yi] += static_cast<double>(data.x[xi]) * data.w[wi]; });

  backend->conv2d_forward(args, x, w, bias ? ConstView(b) : ConstView(), y);
  CHECK(worst_error(y.host(), expected) < tolerance(type));
}

TEST_CASE("the gradient of a convolution's input", "[kernels][libraries]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto args = GENERATE(from_range(std::begin(kCases), std::end(kCases)));
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  if (!backend->supports(type)) return;
  CAPTURE(backend->name(), type, args.in_h, args.in_c, args.out_c, args.kernel_h, args.groups);
  const Data data(args, *backend, type);
  const OnDevice dy(*backend, data.dy, type), w(*backend, data.w),
      dx(*backend, data.x, type);  // dx: old values must not matter

  std::vector<double> expected(data.x.size());
  for_products(args,
               [&](size_t xi, size_t wi, size_t yi) { expected[xi] += static_cast<double>(data.dy[yi]) * data.w[wi]; });

  backend->conv2d_backward_data(args, dy, w, dx);
  CHECK(worst_error(dx.host(), expected) < tolerance(type));

  const OnDevice sum(*backend, data.x, type), spare(*backend, data.x, type);
  backend->conv2d_add_backward_data(args, dy, w, spare, sum);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += data.x[i];
  CHECK(worst_error(sum.host(), expected) < tolerance(type));
}

TEST_CASE("the gradients of a convolution's weights and bias are added to what is there", "[kernels][libraries]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto args = GENERATE(from_range(std::begin(kCases), std::end(kCases)));
  const bool bias = GENERATE(false, true);
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  if (!backend->supports(type)) return;
  CAPTURE(backend->name(), type, args.in_h, args.in_c, args.out_c, args.kernel_h, args.groups, bias);
  const Data data(args, *backend, type);
  const OnDevice x(*backend, data.x, type), dy(*backend, data.dy, type), dw(*backend, data.w), db(*backend, data.b);

  std::vector<double> expected = doubles(data.w), expected_bias = doubles(data.b);
  std::vector<float> one_by_one = data.w;
  for_products(args, [&](size_t xi, size_t wi, size_t yi) {
    expected[wi] += static_cast<double>(data.dy[yi]) * data.x[xi];
    one_by_one[wi] += data.dy[yi] * data.x[xi];
  });
  // A sum of up to 2,048 products: a library may add them in the order that rounds most, which is one after another.
  const double in_floats = 2 * worst_error(one_by_one, expected);
  CAPTURE(in_floats);
  for (size_t i = 0; bias && i < data.dy.size(); ++i) expected_bias[i % data.b.size()] += data.dy[i];

  backend->conv2d_backward_weights(args, x, dy, dw, bias ? View(db) : View());
  CHECK(worst_error(dw.host(), expected) < std::fmax(tolerance(type), in_floats));
  CHECK(worst_error(db.host(), expected_bias) < 1e-5);
}

TEST_CASE("a convolution gives the same bits every time", "[kernels][libraries]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Conv2dArgs args{8, 16, 16, 16, 32, 3, 3, 1, 1, 1, 1, 1};
  const Data data(args, *backend);
  const OnDevice x(*backend, data.x), w(*backend, data.w), b(*backend, data.b), dy(*backend, data.dy);
  const auto run = [&] {
    const OnDevice y(*backend, data.dy), dx(*backend, data.x), dw(*backend, data.w), db(*backend, data.b);
    backend->conv2d_forward(args, x, w, b, y);
    backend->conv2d_backward_data(args, dy, w, dx);
    backend->conv2d_backward_weights(args, x, dy, dw, db);
    return std::vector{y.host(), dx.host(), dw.host(), db.host()};
  };
  const auto first = run();
  CHECK(run() == first);
  CHECK(run() == first);
}

TEST_CASE("convolutions' gradients as matrix products are the sums over the window, with any number of threads") {
  std::vector<Conv2dArgs> cases(std::begin(kProductCases), std::end(kProductCases));
  std::ranges::copy_if(kCases, std::back_inserter(cases), [](const Conv2dArgs& a) { return a.groups == 1; });
  const auto args = GENERATE_COPY(from_range(cases));
  CAPTURE(args.batch, args.in_h, args.in_w, args.in_c, args.out_c, args.kernel_h, args.kernel_w, args.stride_h);
  const auto backend = make_cpu_backend();
  const Data data(args, *backend);
  std::vector<double> expected_dx(data.x.size()), expected_dw = doubles(data.w);
  for_products(args, [&](size_t xi, size_t wi, size_t yi) {
    expected_dx[xi] += static_cast<double>(data.dy[yi]) * data.w[wi];
    expected_dw[wi] += static_cast<double>(data.dy[yi]) * data.x[xi];
  });

  const ConvProducts products(args);
  const auto gradients = [&](int threads) {
    const auto sets_threads = make_cpu_backend(threads);
    std::vector<float> room(static_cast<size_t>(products.room_floats()), NAN);  // old values must not matter
    std::vector<float> dx(data.x.size(), NAN), dw = data.w;
    products.backward_data(data.dy.data(), data.w.data(), dx.data(), room.data());
    products.backward_weights(data.x.data(), data.dy.data(), dw.data(), room.data());
    return std::pair(dx, dw);
  };
  const auto [dx, dw] = gradients(1);
  CHECK(worst_error(dx, expected_dx) < 1e-5);
  CHECK(worst_error(dw, expected_dw) < 1e-5);
  CHECK(gradients(3) == std::pair(dx, dw));
}
