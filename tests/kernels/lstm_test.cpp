#include <catch.hpp>

#include "kernels/cpu/vector_math.h"
#include "tests/kernels/on_device.h"
#include "tests/support/backends.h"

using namespace dgc;

namespace {

using Doubles = std::vector<double>;

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Everything in host memory; the names are those of the ops.
struct LstmCase {
  RnnArgs args;
  std::vector<float> x, w_ih, w_hh, b_ih, b_hh, h, c, dy;

  explicit LstmCase(const RnnArgs& a)
      : args(a),
        x(random_floats(a.steps * a.batch * a.in, 1)),
        w_ih(random_floats(4 * a.hidden * a.in, 2)),
        w_hh(random_floats(4 * a.hidden * a.hidden, 3)),
        b_ih(random_floats(4 * a.hidden, 4)),
        b_hh(random_floats(4 * a.hidden, 5)),
        h(random_floats(a.batch * a.hidden, 6)),
        c(random_floats(a.batch * a.hidden, 7, -2, 2)),
        dy(random_floats(a.steps * a.batch * a.hidden, 8)) {}
};

struct LstmTruth {
  Doubles y, h, c, dx, dw_ih, dw_hh, db;
};

// The formulas of backend.h step by step in double, and their derivatives by the chain rule.
LstmTruth truth_of(const LstmCase& data) {
  const int64_t steps = data.args.steps, batch = data.args.batch, in = data.args.in, hidden = data.args.hidden;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const int64_t state = batch * hidden;
  LstmTruth t{.y = Doubles(at(steps * state)),
              .h = {},
              .c = doubles(data.c),
              .dx = Doubles(data.x.size()),
              .dw_ih = Doubles(data.w_ih.size()),
              .dw_hh = Doubles(data.w_hh.size()),
              .db = Doubles(data.b_ih.size())};
  Doubles gates(at(steps * state * 4)), c_before(at(steps * state)), h_before(at(steps * state)),
      c_after(at(steps * state));
  t.h = doubles(data.h);
  for (int64_t s = 0; s < steps; ++s) {
    const Doubles h = t.h;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t j = 0; j < hidden; ++j) {
        double z[4];
        for (int64_t gate = 0; gate < 4; ++gate) {
          const int64_t row = gate * hidden + j;
          z[gate] = double{data.b_ih[at(row)]} + double{data.b_hh[at(row)]};
          for (int64_t k = 0; k < in; ++k) {
            z[gate] += double{data.w_ih[at(row * in + k)]} * double{data.x[at((s * batch + b) * in + k)]};
          }
          for (int64_t k = 0; k < hidden; ++k) {
            z[gate] += double{data.w_hh[at(row * hidden + k)]} * h[at(b * hidden + k)];
          }
          z[gate] = gate == 2 ? std::tanh(z[gate]) : sigmoid(z[gate]);
          gates[at(((s * batch + b) * 4 + gate) * hidden + j)] = z[gate];
        }
        const int64_t own = b * hidden + j;
        c_before[at(s * state + own)] = t.c[at(own)];
        h_before[at(s * state + own)] = h[at(own)];
        t.c[at(own)] = z[1] * t.c[at(own)] + z[0] * z[2];
        c_after[at(s * state + own)] = t.c[at(own)];
        t.h[at(own)] = z[3] * std::tanh(t.c[at(own)]);
        t.y[at(s * state + own)] = t.h[at(own)];
      }
    }
  }
  Doubles dh(at(state)), dc(at(state));
  for (int64_t s = steps; s-- > 0;) {
    Doubles dh_before(at(state));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t j = 0; j < hidden; ++j) {
        const int64_t own = b * hidden + j;
        const auto gate = [&](int64_t g) { return gates[at(((s * batch + b) * 4 + g) * hidden + j)]; };
        const double d = dh[at(own)] + double{data.dy[at(s * state + own)]},
                     tanh_c = std::tanh(c_after[at(s * state + own)]);
        const double cell = dc[at(own)] + d * gate(3) * (1 - tanh_c * tanh_c);
        const double dz[4] = {cell * gate(2) * gate(0) * (1 - gate(0)),
                              cell * c_before[at(s * state + own)] * gate(1) * (1 - gate(1)),
                              cell * gate(0) * (1 - gate(2) * gate(2)), d * tanh_c * gate(3) * (1 - gate(3))};
        dc[at(own)] = cell * gate(1);
        for (int64_t g = 0; g < 4; ++g) {
          const int64_t row = g * hidden + j;
          t.db[at(row)] += dz[g];
          for (int64_t k = 0; k < in; ++k) {
            const int64_t input = (s * batch + b) * in + k;
            t.dw_ih[at(row * in + k)] += dz[g] * double{data.x[at(input)]};
            t.dx[at(input)] += dz[g] * double{data.w_ih[at(row * in + k)]};
          }
          for (int64_t k = 0; k < hidden; ++k) {
            t.dw_hh[at(row * hidden + k)] += dz[g] * h_before[at(s * state + b * hidden + k)];
            dh_before[at(b * hidden + k)] += dz[g] * double{data.w_hh[at(row * hidden + k)]};
          }
        }
      }
    }
    dh = dh_before;
  }
  return t;
}

struct LstmResult {
  std::vector<float> y, h, c, dx, dw_ih, dw_hh, db_ih, db_hh;
};

// start: what the gradients of the weights hold before.
LstmResult run(Backend& backend, const LstmCase& data, float start = 0, bool want_dx = true, DType type = DType::f32) {
  const OnDevice x(backend, data.x, type), w_ih(backend, data.w_ih), w_hh(backend, data.w_hh), b_ih(backend, data.b_ih),
      b_hh(backend, data.b_hh), h(backend, data.h), c(backend, data.c), dy(backend, data.dy, type);
  const OnDevice y(backend, std::vector<float>(data.dy.size(), NAN), type),
      dx(backend, std::vector<float>(data.x.size(), 9.f), type);
  const auto filled = [&](const std::vector<float>& like) {
    return OnDevice(backend, std::vector<float>(like.size(), start));
  };
  const OnDevice dw_ih = filled(data.w_ih), dw_hh = filled(data.w_hh), db_ih = filled(data.b_ih),
                 db_hh = filled(data.b_hh);
  const Buffer saved(backend.device(), backend.rnn_saved_bytes(data.args, type));
  const View kept{saved.data(), {static_cast<int64_t>(saved.bytes() / sizeof(float))}};
  const RnnWeights w{w_ih, w_hh, b_ih, b_hh};
  backend.rnn_forward(data.args, x, w, {h, c}, y, kept);
  backend.rnn_backward(data.args, x, w, y, kept, dy, want_dx ? dx.view() : View(), {dw_ih, dw_hh, db_ih, db_hh});
  return {y.host(), h.host(), c.host(), dx.host(), dw_ih.host(), dw_hh.host(), db_ih.host(), db_hh.host()};
}

}  // namespace

TEST_CASE("one step of an LSTM by hand", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  // Only biases: i, f and o are sigmoid(0) = 1/2, g is tanh(0.5 + 0.5), c was 3.
  const OnDevice x(*backend, {7}), none(*backend, zeros(4)), half(*backend, {0, 0, 0.5f, 0});
  const OnDevice h(*backend, {5}), c(*backend, {3}), y(*backend, {9});
  backend->rnn_forward({.steps = 1, .batch = 1, .in = 1, .hidden = 1}, x, {none, none, half, half}, {h, c}, y, {});
  const double cell = 1.5 + 0.5 * std::tanh(1.0), out = 0.5 * std::tanh(cell);
  CHECK(worst_error(c.host(), Doubles{cell}) < 1e-6);
  CHECK(worst_error(y.host(), Doubles{out}) < 1e-6);
  CHECK(h.host() == y.host());
}

TEST_CASE("an LSTM and its gradients match the formulas in double", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const int64_t steps = GENERATE(1, 5), batch = GENERATE(1, 3, 20), in = GENERATE(1, 18), hidden = GENERATE(1, 17, 32);
  CAPTURE(backend->name(), steps, batch, in, hidden);
  const LstmCase data({.steps = steps, .batch = batch, .in = in, .hidden = hidden});
  const LstmTruth truth = truth_of(data);
  const LstmResult result = run(*backend, data, 0.5f);
  auto gained = truth;
  for (Doubles* d : {&gained.dw_ih, &gained.dw_hh, &gained.db}) {
    for (double& value : *d) value += 0.5;  // gradients of parameters are added to
  }
  CHECK(worst_error(result.y, truth.y) < 2e-6);
  CHECK(worst_error(result.h, truth.h) < 2e-6);
  CHECK(worst_error(result.c, truth.c) < 2e-6);
  CHECK(worst_error(result.dx, truth.dx) < 2e-5);
  CHECK(worst_error(result.dw_ih, gained.dw_ih) < 2e-5);
  CHECK(worst_error(result.dw_hh, gained.dw_hh) < 2e-5);
  CHECK(worst_error(result.db_ih, gained.db) < 2e-5);
  CHECK(worst_error(result.db_hh, gained.db) < 2e-5);
}

TEST_CASE("an LSTM without a backward pass, or without dx, computes the same bits", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const LstmCase data({.steps = 6, .batch = 4, .in = 9, .hidden = 33});
  const LstmResult whole = run(*backend, data), no_dx = run(*backend, data, 0, false);
  CHECK(no_dx.dw_ih == whole.dw_ih);
  CHECK(no_dx.dx == std::vector<float>(data.x.size(), 9.f));

  // In two stretches: the state carries over.
  const OnDevice w_ih(*backend, data.w_ih), w_hh(*backend, data.w_hh), b_ih(*backend, data.b_ih),
      b_hh(*backend, data.b_hh);
  const OnDevice x(*backend, data.x), h(*backend, data.h), c(*backend, data.c), y(*backend, zeros(6 * 4 * 33));
  const RnnWeights w{w_ih, w_hh, b_ih, b_hh};
  RnnArgs part = data.args;
  part.steps = 2;
  backend->rnn_forward(part, x, w, {h, c}, y, {});
  part.steps = 4;
  backend->rnn_forward(part, x.from(2 * 4 * 9), w, {h, c}, y.from(2 * 4 * 33), {});
  CHECK(worst_error(y.host(), whole.y) < 1e-6);
  CHECK(worst_error(h.host(), whole.h) < 1e-6);
  CHECK(worst_error(c.host(), whole.c) < 1e-6);
}

TEST_CASE("an LSTM gives the same bits in every run", "[kernels]") {
  const auto factory = GENERATE(from_range(backends()));
  const LstmCase data({.steps = 7, .batch = 5, .in = 40, .hidden = 72});
  const auto once = run(*factory.make(), data), again = run(*factory.make(), data);
  CHECK(once.y == again.y);
  CHECK(once.dx == again.dx);
  CHECK(once.dw_ih == again.dw_ih);
  CHECK(once.dw_hh == again.dw_hh);
  CHECK(once.db_ih == again.db_ih);
}

TEST_CASE("an LSTM in 16 bits is near to fp32", "[kernels]") {
  const auto factory = GENERATE(from_range(backends()));
  const auto backend = factory.make();
  if (!backend->supports(DType::f16)) return;
  const LstmCase data({.steps = 5, .batch = 4, .in = 24, .hidden = 40});
  const LstmTruth truth = truth_of(data);
  const LstmResult result = run(*backend, data, 0, true, DType::f16);
  CHECK(worst_error(result.y, truth.y) < 0.01);
  CHECK(worst_error(result.dw_hh, truth.dw_hh) < 0.05);
}

TEST_CASE("the CPU's exp, sigmoid and tanh are within 3e-7 of the truth, small numbers too", "[kernels]") {
  double exp_error = 0, sigmoid_error = 0, tanh_error = 0;
  for (double size = 1e-30; size < 86; size *= 1.0137) {
    for (const float x : {static_cast<float>(size), static_cast<float>(-size)}) {
      const double sigmoid = 1 / (1 + std::exp(-double{x})), tanh = std::tanh(double{x});
      sigmoid_error = std::fmax(sigmoid_error, std::fabs(double{vector_sigmoid(x)} / sigmoid - 1));
      tanh_error = std::fmax(tanh_error, std::fabs(double{vector_tanh(x)} / tanh - 1));
      if (x < 0) exp_error = std::fmax(exp_error, std::fabs(double{exp_of_negative(x)} / std::exp(double{x}) - 1));
    }
  }
  CHECK(exp_error < 3e-7);
  CHECK(sigmoid_error < 3e-7);
  CHECK(tanh_error < 3e-7);
  CHECK((vector_tanh(0) == 0 && vector_sigmoid(0) == 0.5f && exp_of_negative(0) == 1));
  CHECK((vector_tanh(INFINITY) == 1 && vector_tanh(-INFINITY) == -1));
  CHECK((vector_sigmoid(INFINITY) == 1 && vector_sigmoid(-INFINITY) < 1e-37f));
  CHECK((std::isnan(vector_tanh(NAN)) && std::isnan(vector_sigmoid(NAN)) && std::isnan(exp_of_negative(NAN))));
}
