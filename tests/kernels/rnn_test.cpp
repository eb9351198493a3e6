#include <array>
#include <catch.hpp>

#include "tests/kernels/on_device.h"
#include "tests/support/backends.h"

using namespace dgc;

namespace {

using Doubles = std::vector<double>;

enum Input { kX, kWih, kWhh, kBih, kBhh, kInputs };

// A layer without a state, everything in host memory.
struct RnnCase {
  RnnArgs args;
  std::array<std::vector<float>, kInputs> in;
  std::vector<float> dy;

  explicit RnnCase(const RnnArgs& a) : args(a) {
    in[kX] = random_floats(a.steps * a.batch * a.in, 1);
    in[kWih] = random_floats(a.gates() * a.in, 2);
    in[kWhh] = random_floats(a.gates() * a.hidden, 3);
    in[kBih] = a.biases ? random_floats(a.gates(), 4) : zeros(a.gates());
    in[kBhh] = a.biases ? random_floats(a.gates(), 5) : zeros(a.gates());
    dy = random_floats(a.steps * a.batch * a.hidden, 6);
  }
};

using Numbers = std::array<Doubles, kInputs>;

// The formulas of RnnArgs, one number after the other.
Doubles outputs(const RnnArgs& a, const Numbers& in) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  Doubles h(at(a.batch * a.hidden)), c(h), y;
  for (int64_t t = 0; t < a.steps; ++t) {
    const Doubles before = h;
    for (int64_t b = 0; b < a.batch; ++b) {
      // The products of row `row` of the weights with the input and with the state, biases in.
      const auto of_input = [&](int64_t row) {
        double sum = in[kBih][at(row)];
        for (int64_t k = 0; k < a.in; ++k)
          sum += in[kWih][at(row * a.in + k)] * in[kX][at((t * a.batch + b) * a.in + k)];
        return sum;
      };
      const auto of_state = [&](int64_t row) {
        double sum = in[kBhh][at(row)];
        for (int64_t k = 0; k < a.hidden; ++k) sum += in[kWhh][at(row * a.hidden + k)] * before[at(b * a.hidden + k)];
        return sum;
      };
      for (int64_t j = 0; j < a.hidden; ++j) {
        const auto both = [&](int64_t gate) { return of_input(gate * a.hidden + j) + of_state(gate * a.hidden + j); };
        double &own_h = h[at(b * a.hidden + j)], &own_c = c[at(b * a.hidden + j)];
        switch (a.cell) {
          case RnnCell::lstm:
            own_c = sigmoid(both(1)) * own_c + sigmoid(both(0)) * std::tanh(both(2));
            own_h = sigmoid(both(3)) * std::tanh(own_c);
            break;
          case RnnCell::gru: {
            const double r = sigmoid(both(0)), z = sigmoid(both(1));
            const double n = std::tanh(of_input(2 * a.hidden + j) + r * of_state(2 * a.hidden + j));
            own_h = (1 - z) * n + z * before[at(b * a.hidden + j)];
            break;
          }
          case RnnCell::tanh:
            own_h = std::tanh(both(0));
            break;
          case RnnCell::relu:
            own_h = std::fmax(0.0, both(0));
            break;
        }
      }
    }
    y.insert(y.end(), h.begin(), h.end());
  }
  return y;
}

// The gradient of sum(dy * y), by central differences in double.
Doubles gradient(const RnnCase& data, Numbers in, Input of) {
  const auto loss = [&] {
    const Doubles y = outputs(data.args, in);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += double{data.dy[i]} * y[i];
    return sum;
  };
  Doubles d;
  for (double& value : in[of]) {
    const double keep = value, eps = 1e-5;
    value = keep + eps;
    const double up = loss();
    value = keep - eps;
    d.push_back((up - loss()) / (2 * eps));
    value = keep;
  }
  return d;
}

struct RnnResult {
  std::vector<float> y;
  std::array<std::vector<float>, kInputs> d;
};

// start: what the gradients of the weights hold before.
RnnResult run(Backend& backend, const RnnCase& data, float start) {
  std::vector<OnDevice> in, d;
  for (const auto& values : data.in) in.emplace_back(backend, values);
  for (const auto& values : data.in) d.emplace_back(backend, std::vector<float>(values.size(), start));
  const OnDevice y(backend, std::vector<float>(data.dy.size(), NAN)), dy(backend, data.dy);
  const Buffer saved(backend.device(), backend.rnn_saved_bytes(data.args, DType::f32));
  const View kept{saved.data(), {static_cast<int64_t>(saved.bytes() / sizeof(float))}};
  RnnWeights w{in[kWih], in[kWhh], {}, {}};
  RnnGradients dw{d[kWih], d[kWhh], {}, {}};
  if (data.args.biases) {
    w.b_ih = in[kBih], w.b_hh = in[kBhh];
    dw.b_ih = d[kBih], dw.b_hh = d[kBhh];
  }
  backend.rnn_forward(data.args, in[kX], w, {}, y, kept);
  backend.rnn_backward(data.args, in[kX], w, y, kept, dy, d[kX], dw);
  RnnResult result{y.host(), {}};
  for (size_t i = 0; i < kInputs; ++i) result.d[i] = d[i].host();
  return result;
}

}  // namespace

TEST_CASE("recurrent layers and their gradients match the formulas in double", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru, RnnCell::tanh, RnnCell::relu);
  const bool biases = GENERATE(true, false);
  const int64_t steps = GENERATE(1, 4), batch = GENERATE(1, 3), hidden = GENERATE(1, 5);
  CAPTURE(backend->name(), static_cast<int>(cell), biases, steps, batch, hidden);
  const RnnCase data(
      {.cell = cell, .steps = steps, .batch = batch, .in = hidden + 2, .hidden = hidden, .biases = biases});
  Numbers in;
  for (size_t i = 0; i < kInputs; ++i) in[i] = doubles(data.in[i]);
  const RnnResult result = run(*backend, data, 0.5f);
  CHECK(worst_error(result.y, outputs(data.args, in)) < 2e-6);
  for (const Input of : {kX, kWih, kWhh, kBih, kBhh}) {
    if (!biases && (of == kBih || of == kBhh)) continue;
    Doubles expected = gradient(data, in, of);
    if (of != kX) {
      for (double& value : expected) value += 0.5;  // gradients of parameters are added to
    }
    CAPTURE(static_cast<int>(of));
    CHECK(worst_error(result.d[of], expected) < 2e-5);
  }
}

TEST_CASE("a NaN in a stream passes through a recurrent layer, and stays in its stream", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru, RnnCell::tanh, RnnCell::relu);
  CAPTURE(backend->name(), static_cast<int>(cell));
  if (cell == RnnCell::relu && backend->name() != "cpu") return;  // cuDNN does not say what its relu makes of a NaN
  RnnCase data({.cell = cell, .steps = 2, .batch = 2, .in = 3, .hidden = 4});
  data.in[kX][0] = NAN;
  const std::vector<float> y = run(*backend, data, 0).y;
  for (size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 4 % 2 == 0));
}

TEST_CASE("recurrent layers of many streams, without a backward pass and in every run, give the same", "[kernels]") {
  const auto factory = GENERATE(from_range(backends()));
  const auto backend = factory.make();
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru, RnnCell::tanh, RnnCell::relu);
  CAPTURE(backend->name(), static_cast<int>(cell));
  RnnCase data({.cell = cell, .steps = 7, .batch = 20, .in = 18, .hidden = 33});
  for (float& w : data.in[kWhh]) w *= 0.2f;  // or what relu adds up grows from step to step, and rounding with it
  Numbers in;
  for (size_t i = 0; i < kInputs; ++i) in[i] = doubles(data.in[i]);
  const RnnResult once = run(*backend, data, 0), again = run(*factory.make(), data, 0);
  CHECK(worst_error(once.y, outputs(data.args, in)) < 1e-5);
  CHECK(once.y == again.y);
  CHECK(once.d == again.d);
  std::vector<OnDevice> device;
  for (const auto& values : data.in) device.emplace_back(*backend, values);
  const OnDevice y(*backend, zeros(7 * 20 * 33));
  const RnnWeights w{device[kWih], device[kWhh], device[kBih], device[kBhh]};
  backend->rnn_forward(data.args, device[kX], w, {}, y, {});
  CHECK(worst_error(y.host(), once.y) < 1e-6);
}

TEST_CASE("a gru goes on from its state", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const RnnCase data({.cell = RnnCell::gru, .steps = 5, .batch = 2, .in = 3, .hidden = 4});
  std::vector<OnDevice> in;
  for (const auto& values : data.in) in.emplace_back(*backend, values);
  const RnnWeights w{in[kWih], in[kWhh], in[kBih], in[kBhh]};
  const OnDevice whole(*backend, zeros(5 * 2 * 4)), parts(*backend, zeros(5 * 2 * 4)), h(*backend, zeros(2 * 4));
  backend->rnn_forward(data.args, in[kX], w, {}, whole, {});
  RnnArgs part = data.args;
  part.steps = 2;
  backend->rnn_forward(part, in[kX], w, {h, {}}, parts, {});
  part.steps = 3;
  backend->rnn_forward(part, in[kX].from(2 * 2 * 3), w, {h, {}}, parts.from(2 * 2 * 4), {});
  CHECK(worst_error(parts.host(), whole.host()) < 1e-6);
  const std::vector<float> y = parts.host();
  CHECK(h.host() == std::vector<float>(y.end() - 2 * 4, y.end()));
}
