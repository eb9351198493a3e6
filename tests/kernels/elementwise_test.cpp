#include <catch.hpp>

#include "tensor/rng.h"
#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"
#include "tests/support/all_of.h"

using namespace dgc;

TEST_CASE("activations and their derivatives", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(1, 15, 17, 16385);
  const auto kind = GENERATE(from_range(test::all_of<Activation>()));
  CAPTURE(backend->name(), n, static_cast<int>(kind));
  auto x = random_floats(n, 1, -3, 3);
  x[0] = 0;
  if (n > 3) x[1] = 19.5f, x[2] = 20, x[3] = 25;
  const auto dy = random_floats(n, 2);
  std::vector<double> y, dx;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    switch (kind) {
      case Activation::clipped_relu:
        y.push_back(std::fmin(std::fmax(v, 0), 20));
        dx.push_back(v > 0 && v < 20 ? dy[i] : 0);
        break;
      case Activation::relu:
        y.push_back(v > 0 ? v : 0);
        dx.push_back(v > 0 ? dy[i] : 0);
        break;
      case Activation::tanh:
        y.push_back(std::tanh(v));
        dx.push_back(dy[i] / (std::cosh(v) * std::cosh(v)));
        break;
      case Activation::sigmoid:
        y.push_back(1 / (1 + std::exp(-v)));
        dx.push_back(dy[i] * std::exp(-v) / ((1 + std::exp(-v)) * (1 + std::exp(-v))));
        break;
    }
  }
  const OnDevice both(*backend, x), gradient(*backend, dy);  // y over x, dx over dy
  backend->activation_forward(kind, both, both);
  CHECK(worst_error(both.host(), y) < 1e-6);
  backend->activation_backward(kind, both, gradient, gradient);
  CHECK(worst_error(gradient.host(), dx) < 2e-6);
}

TEST_CASE("a NaN passes through relu, clipped or not", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto kind = GENERATE(Activation::relu, Activation::clipped_relu);
  CAPTURE(backend->name(), static_cast<int>(kind));
  const OnDevice x(*backend, {NAN, -1, 1});
  backend->activation_forward(kind, x, x);
  CHECK(std::isnan(x.host()[0]));
}

TEST_CASE("add adds", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(0, 1, 17, 16384, 16385);
  const auto a = random_floats(n, 1), b = random_floats(n, 2);
  const OnDevice x(*backend, a), y(*backend, b);
  backend->add(x, y);
  auto expected = b;
  for (size_t i = 0; i < a.size(); ++i) expected[i] += a[i];
  CHECK(y.host() == expected);
}

TEST_CASE("subtract subtracts, also in place", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(0, 1, 17, 16384, 16385);
  const auto a = random_floats(n, 1), b = random_floats(n, 2);
  const OnDevice x(*backend, a), y(*backend, b), z(*backend, zeros(n));
  backend->subtract(x, y, z);
  auto expected = a;
  for (size_t i = 0; i < a.size(); ++i) expected[i] -= b[i];
  CHECK(z.host() == expected);
  backend->subtract(x, y, y);
  CHECK(y.host() == expected);
}

TEST_CASE("elementwise ops at addresses that packs do not fit leave what lies around alone", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(1, 3, 4, 5, 1023, 1025);
  CAPTURE(backend->name(), n);
  const auto a = random_floats(n + 2, 1), b = random_floats(n + 2, 2);
  const OnDevice x(*backend, a), y(*backend, b), z(*backend, b), d(*backend, b);
  View to = y.from(1), rectified = z.from(1), less = d.from(1);
  to.shape = rectified.shape = less.shape = {n};
  backend->add(x.from(1), to);
  backend->activation_forward(Activation::relu, x.from(1), rectified);
  backend->subtract(x.from(1), less, less);
  auto sum = b, positive = b, difference = b;
  for (size_t i = 1; i + 1 < a.size(); ++i) {
    sum[i] += a[i];
    positive[i] = std::max(0.f, a[i]);
    difference[i] = a[i] - b[i];
  }
  CHECK(y.host() == sum);
  CHECK(z.host() == positive);
  CHECK(d.host() == difference);
}

TEST_CASE("elementwise ops in 16 bits compute in fp32 and round once", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const DType type = GENERATE(DType::f16, DType::bf16);
  const auto n = GENERATE(7, 8, 9, 2049);
  CAPTURE(backend->name(), static_cast<int>(type), n);
  const OnDevice x(*backend, random_floats(n, 1), type), y(*backend, random_floats(n, 2), type);
  const auto a = x.host(), b = y.host();
  auto sum = b;
  for (size_t i = 0; i < a.size(); ++i) sum[i] += a[i];
  backend->add(x, y);
  CHECK(y.host() == OnDevice(*backend, sum, type).host());

  std::vector<double> out, slope;
  for (const float v : a) out.push_back(std::tanh(static_cast<double>(v)));
  backend->activation_forward(Activation::tanh, x, x);
  CHECK(worst_error(x.host(), out) < rounding(type));
  const auto rounded = x.host(), dy = y.host();
  for (size_t i = 0; i < a.size(); ++i) slope.push_back(dy[i] * (1.0 - static_cast<double>(rounded[i]) * rounded[i]));
  backend->activation_backward(Activation::tanh, x, y, y);
  CHECK(worst_error(y.host(), slope) < rounding(type));
}

TEST_CASE("convert rounds to nearest even, between all types of activations", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const DType from = GENERATE(DType::f32, DType::f16, DType::bf16), to = GENERATE(DType::f32, DType::f16, DType::bf16);
  const auto n = GENERATE(1, 3, 4, 1027);
  CAPTURE(backend->name(), static_cast<int>(from), static_cast<int>(to), n);
  auto values = random_floats(n, 1, -100, 100);
  values[0] = 1 + 0x1p-11f;                                                 // a tie in f16
  if (n > 3) values[1] = 1e6f, values[2] = 1e-7f, values[3] = 1 + 0x1p-8f;  // beyond f16, denormal there; a tie in bf16
  const OnDevice x(*backend, values, from), y(*backend, zeros(n), to);
  backend->convert(x, y);
  CHECK(y.host() == OnDevice(*backend, x.host(), to).host());
}

TEST_CASE("dropout keeps what Philox says, scaled", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto first = GENERATE(uint64_t{0}, uint64_t{3}, uint64_t{1} << 40);
  const auto p = GENERATE(0.f, 0.3f, 0.5f);
  const auto n = GENERATE(1, 5, 40000);
  CAPTURE(backend->name(), first, p, n);
  const DropoutArgs args{.numel = n, .p = p, .seed = 7, .stream = 9, .first = first};
  const auto x = random_floats(n, 1, 1, 2);
  const Philox random(7, 9);
  std::vector<float> expected;
  int64_t kept = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool keep = random.uniform(first + i) >= p;
    expected.push_back(keep ? x[i] / (1 - p) : 0);
    kept += keep;
  }
  const OnDevice from(*backend, x), to(*backend, x);
  backend->dropout_forward(args, from, to);
  CHECK(worst_error(to.host(), expected) < 1e-6);
  if (n > 1000) CHECK(std::fabs(static_cast<double>(kept) / n - (1 - p)) < 0.0125);  // five deviations of n draws

  // Any part of the stream is the same numbers: the mask of a sample does not depend on the batch around it.
  if (n > 5) {
    const OnDevice part(*backend, {x.begin() + 5, x.end()});
    backend->dropout_forward({.numel = n - 5, .p = p, .seed = 7, .stream = 9, .first = first + 5}, part, part);
    const auto whole = to.host();
    CHECK(part.host() == std::vector<float>(whole.begin() + 5, whole.end()));
  }
}

TEST_CASE("dropout moves on with the step in device memory", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(1, 1000);
  const OnDevice x(*backend, random_floats(n, 1)), at_step(*backend, zeros(n)), by_hand(*backend, zeros(n));
  const ValuesOnDevice<StepControl> control(*backend, {{.step = 5}});
  backend->dropout_forward({n, 0.5f, 7, 9, 1003, 2, control.data()}, x, at_step);
  backend->dropout_forward({.numel = n, .p = 0.5f, .seed = 7, .stream = 9, .first = 5 * 1003 + 2}, x, by_hand);
  CHECK(at_step.host() == by_hand.host());
}
