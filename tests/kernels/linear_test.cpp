#include <catch.hpp>

#include "tests/kernels/on_device.h"
#include "tests/support/backends.h"

using namespace dgc;

TEST_CASE("linear computes x W^T + b", "[kernels][libraries]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const OnDevice x(*backend, {1, 2}), w(*backend, {10, 1, /**/ 0, -1}), b(*backend, {0.5f, 0}), y(*backend, {9, 9});
  backend->linear_forward({.batch = 1, .in = 2, .out = 2}, x, w, b, y);
  CHECK(y.host() == std::vector<float>{12.5f, -2.f});  // by hand
  backend->linear_forward({.batch = 1, .in = 2, .out = 2}, x, w, {}, y);
  CHECK(y.host() == std::vector<float>{12.f, -2.f});
}

TEST_CASE("linear and its gradients match plain loops in double", "[kernels][libraries]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const int64_t rows = GENERATE(1, 5, 33), in = GENERATE(1, 17, 64), out = GENERATE(1, 10, 65);
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  if (!backend->supports(type)) return;
  CAPTURE(backend->name(), type, rows, in, out);
  // Numbers that the type holds exactly, so that only results are rounded, and y and dx alone.
  const auto draw = [&](int64_t n, unsigned seed) { return OnDevice(*backend, random_floats(n, seed), type).host(); };
  const auto x = draw(rows * in, 1), w = draw(out * in, 2), dy = draw(rows * out, 4), b = random_floats(out, 3);
  const double tolerance = 1e-5 + (type == DType::f32 ? 0 : 4 * rounding(type));

  std::vector<double> y(dy.size()), dx(x.size()), dw = doubles(w), db = doubles(b);  // dw and db are added to
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      const auto yi = static_cast<size_t>(r * out + o);
      y[yi] = b[static_cast<size_t>(o)];
      db[static_cast<size_t>(o)] += dy[yi];
      for (int64_t i = 0; i < in; ++i) {
        const auto xi = static_cast<size_t>(r * in + i), wi = static_cast<size_t>(o * in + i);
        y[yi] += static_cast<double>(x[xi]) * w[wi];
        dx[xi] += static_cast<double>(dy[yi]) * w[wi];
        dw[wi] += static_cast<double>(dy[yi]) * x[xi];
      }
    }
  }

  const LinearArgs args{rows, in, out};
  const OnDevice tx(*backend, x, type), tw(*backend, w), tb(*backend, b), tdy(*backend, dy, type);
  const OnDevice ty(*backend, dy, type), tdx(*backend, x, type), tdw(*backend, w), tdb(*backend, b);
  backend->linear_forward(args, tx, tw, tb, ty);
  backend->linear_backward(args, tx, tw, tdy, tdx, tdw, tdb);
  CHECK(worst_error(ty.host(), y) < tolerance);
  CHECK(worst_error(tdx.host(), dx) < tolerance);
  CHECK(worst_error(tdw.host(), dw) < 1e-5);
  CHECK(worst_error(tdb.host(), db) < 1e-5);

  SECTION("a null gradient is not wanted") {
    const OnDevice again(*backend, w);
    backend->linear_backward(args, tx, tw, tdy, {}, again, {});
    CHECK(again.host() == tdw.host());
  }
}
