// Recurrent layers of cuDNN by plain loops: one layer in one direction over sequences of one length. The reserve keeps
// what cuDNN's documentation lets it keep: gates from the forward pass, their gradients from the backward pass. All of
// it is fp32, whatever the type of the data.
#include <algorithm>
#include <cmath>

#include "tests/fake_cuda/dnn.h"

struct cudnnRNNStruct {
  bool set = false;
  cudnnRNNMode_t cell{};
  bool biases = false;
  cudnnDataType_t type{};
  int in = 0, hidden = 0;
  bool tf32 = false;
};

struct cudnnRNNDataStruct {
  bool set = false;
  cudnnDataType_t type{};
  int steps = 0, batch = 0, width = 0;
};

namespace dgc::fake_cuda {
namespace {

struct RnnSizes {
  cudnnRNNMode_t cell;
  bool biases;
  Element type;
  size_t steps, batch, in, hidden, gap;
  bool tf32;  // products round their factors

  double factor(float value) const { return static_cast<double>(tf32 ? to_tf32(value) : value); }
  size_t gates() const { return cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1; }
  size_t width() const { return gates() * hidden; }
  // Elements of the weight space: all matrices, then all biases. Behind each comes a gap.
  size_t matrix_numel(size_t number) const { return hidden * (number < gates() ? in : hidden); }
  size_t matrix_at(size_t number) const {
    size_t at = 0;
    for (size_t i = 0; i < number; ++i) at += matrix_numel(i) + gap;
    return at;
  }
  size_t bias_at(size_t number) const { return matrix_at(2 * gates()) + number * (hidden + gap); }
  size_t weight_bytes() const { return (biases ? bias_at(2 * gates()) : matrix_at(2 * gates())) * size_of(type); }
  size_t x() const { return steps * batch * in; }
  size_t y() const { return steps * batch * hidden; }
  size_t state() const { return batch * hidden; }
  // Floats of the reserve, per step and stream: gates, the cell or the GRU's recurrent part, and the gradients of what
  // enters the gates from the input and from the state.
  size_t reserve_row() const { return 3 * width() + hidden; }
  size_t reserve_bytes() const { return steps * batch * reserve_row() * sizeof(float); }
  size_t work_bytes() const { return 1024 + batch * width() * sizeof(float); }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A weight space as floats, gate by gate.
class Weights {
 public:
  Weights(const RnnSizes& sizes, const void* space)
      : s_(sizes), values_(get_all(sizes.type, space, sizes.weight_bytes() / size_of(sizes.type))) {}

  // What enters gate unit `i` of gate `g` from a vector, by the matrices of the input (side 0) or of the state (side
  // 1).
  double product(size_t side, size_t g, size_t i, const float* from) const {
    const size_t number = side * s_.gates() + g, n = side == 0 ? s_.in : s_.hidden;
    const float* const row = values_.data() + s_.matrix_at(number) + i * n;
    double sum = s_.biases ? static_cast<double>(values_[s_.bias_at(number) + i]) : 0;
    for (size_t j = 0; j < n; ++j) sum += s_.factor(row[j]) * s_.factor(from[j]);
    return sum;
  }
  const float* row(size_t side, size_t g, size_t i) const {
    const size_t n = side == 0 ? s_.in : s_.hidden;
    return values_.data() + s_.matrix_at(side * s_.gates() + g) + i * n;
  }

 private:
  const RnnSizes& s_;
  std::vector<float> values_;
};

// One row of the reserve.
struct Reserved {
  float* gates;
  float* kept;  // an lstm's cell; of a gru what enters the new gate from the state
  float* from_input;
  float* from_state;
  Reserved(const RnnSizes& s, float* reserve, size_t t, size_t b)
      : gates(reserve + (t * s.batch + b) * s.reserve_row()),
        kept(gates + s.width()),
        from_input(kept + s.hidden),
        from_state(from_input + s.width()) {}
};

// The state after one step of one stream, from the state before it.
void step(const RnnSizes& s, const Weights& w, const float* x, const float* h, const float* c, Reserved keep,
          float* h_after, float* c_after) {
  for (size_t i = 0; i < s.hidden; ++i) {
    const auto in = [&](size_t g) { return w.product(0, g, i, x); };
    const auto both = [&](size_t g) { return in(g) + w.product(1, g, i, h); };
    const auto note = [&](size_t g, double value) { keep.gates[g * s.hidden + i] = static_cast<float>(value); };
    switch (s.cell) {
      case CUDNN_LSTM: {
        const double input = sigmoid(both(0)), forget = sigmoid(both(1)), fresh = std::tanh(both(2)),
                     output = sigmoid(both(3));
        const double cell = forget * static_cast<double>(c[i]) + input * fresh;
        note(0, input), note(1, forget), note(2, fresh), note(3, output);
        keep.kept[i] = c_after[i] = static_cast<float>(cell);
        h_after[i] = static_cast<float>(output * std::tanh(cell));
        break;
      }
      case CUDNN_GRU: {
        const double reset = sigmoid(both(0)), update = sigmoid(both(1)), recurrent = w.product(1, 2, i, h);
        const double fresh = std::tanh(in(2) + reset * recurrent);
        note(0, reset), note(1, update), note(2, fresh);
        keep.kept[i] = static_cast<float>(recurrent);
        h_after[i] = static_cast<float>((1 - update) * fresh + update * static_cast<double>(h[i]));
        break;
      }
      case CUDNN_RNN_TANH:
        h_after[i] = static_cast<float>(std::tanh(both(0)));
        break;
      case CUDNN_RNN_RELU:
        h_after[i] = static_cast<float>(std::max(0.0, both(0)));
        break;
    }
  }
}

void forward(const RnnSizes& s, const void* x, void* y, const void* hx, void* hy, const void* cx, void* cy,
             const void* space, float* reserve) {
  const Weights weights(s, space);
  const std::vector<float> in = get_all(s.type, x, s.x());
  std::vector<float> h = get_all(s.type, hx, s.state()), c(s.state()), next(s.state());
  if (s.cell == CUDNN_LSTM) c = get_all(s.type, cx, s.state());
  std::vector<float> unkept(s.reserve_row());
  for (size_t t = 0; t < s.steps; ++t) {
    for (size_t b = 0; b < s.batch; ++b) {
      const Reserved keep = reserve != nullptr ? Reserved(s, reserve, t, b) : Reserved(s, unkept.data(), 0, 0);
      const size_t at = b * s.hidden;
      step(s, weights, in.data() + (t * s.batch + b) * s.in, h.data() + at, c.data() + at, keep, next.data() + at,
           c.data() + at);
    }
    for (size_t i = 0; i < s.state(); ++i) {
      put(s.type, y, t * s.state() + i, next[i]);
      h[i] = get(s.type, y, t * s.state() + i);  // as it is rounded
    }
  }
  if (hy != nullptr) put_all(s.type, hy, h);
  if (cy != nullptr && s.cell == CUDNN_LSTM) put_all(s.type, cy, c);
}

// Writes the gradients of what enters the gates to the reserve, and dx.
void backward_data(const RnnSizes& s, const void* y, const void* dy, void* dx, const void* hx, const void* cx,
                   const void* space, float* reserve) {
  const Weights weights(s, space);
  const std::vector<float> out = get_all(s.type, y, s.y()), dout = get_all(s.type, dy, s.y());
  const std::vector<float> h0 = get_all(s.type, hx, s.state());
  std::vector<float> c0(s.state());
  if (s.cell == CUDNN_LSTM) c0 = get_all(s.type, cx, s.state());
  std::vector<double> dh(s.state()), dc(s.state()), dh_before(s.state());
  std::vector<float> din(s.x());
  for (size_t t = s.steps; t-- > 0;) {
    std::ranges::fill(dh_before, 0.0);
    for (size_t b = 0; b < s.batch; ++b) {
      const Reserved r(s, reserve, t, b);
      const size_t at = b * s.hidden;
      const float* const h = t > 0 ? out.data() + (t - 1) * s.state() + at : h0.data() + at;
      for (size_t i = 0; i < s.hidden; ++i) {
        const double d = dh[at + i] + static_cast<double>(dout[t * s.state() + at + i]);
        const auto gate = [&](size_t g) { return static_cast<double>(r.gates[g * s.hidden + i]); };
        const auto set_gate = [&](size_t g, double input, double state) {
          r.from_input[g * s.hidden + i] = static_cast<float>(input);
          r.from_state[g * s.hidden + i] = static_cast<float>(state);
        };
        const auto result = static_cast<double>(out[t * s.state() + at + i]);
        switch (s.cell) {
          case CUDNN_LSTM: {
            const double input = gate(0), forget = gate(1), fresh = gate(2), output = gate(3);
            const double squashed = std::tanh(static_cast<double>(r.kept[i]));
            const auto before = static_cast<double>(t > 0 ? Reserved(s, reserve, t - 1, b).kept[i] : c0[at + i]);
            const double cell = dc[at + i] + d * output * (1 - squashed * squashed);
            const double of[] = {cell * fresh * input * (1 - input), cell * before * forget * (1 - forget),
                                 cell * input * (1 - fresh * fresh), d * squashed * output * (1 - output)};
            for (size_t g = 0; g < 4; ++g) set_gate(g, of[g], of[g]);
            dc[at + i] = cell * forget;
            break;
          }
          case CUDNN_GRU: {
            const double reset = gate(0), update = gate(1), fresh = gate(2);
            const double of_fresh = d * (1 - update) * (1 - fresh * fresh);
            const double of_update = d * (static_cast<double>(h[i]) - fresh) * update * (1 - update);
            const double of_reset = of_fresh * static_cast<double>(r.kept[i]) * reset * (1 - reset);
            set_gate(0, of_reset, of_reset);
            set_gate(1, of_update, of_update);
            set_gate(2, of_fresh, of_fresh * reset);
            dh_before[at + i] += d * update;
            break;
          }
          case CUDNN_RNN_TANH:
            set_gate(0, d * (1 - result * result), d * (1 - result * result));
            break;
          case CUDNN_RNN_RELU:
            set_gate(0, result > 0 ? d : 0, result > 0 ? d : 0);
            break;
        }
      }
      std::vector<double> sums(s.in);
      for (size_t g = 0; g < s.gates(); ++g) {
        for (size_t i = 0; i < s.hidden; ++i) {
          const double by_input = s.factor(r.from_input[g * s.hidden + i]);
          const double by_state = s.factor(r.from_state[g * s.hidden + i]);
          const float *const input_row = weights.row(0, g, i), *const state_row = weights.row(1, g, i);
          for (size_t j = 0; j < s.in; ++j) sums[j] += by_input * s.factor(input_row[j]);
          for (size_t j = 0; j < s.hidden; ++j) dh_before[at + j] += by_state * s.factor(state_row[j]);
        }
      }
      std::ranges::copy(sums, din.begin() + static_cast<std::ptrdiff_t>((t * s.batch + b) * s.in));
    }
    dh = dh_before;
  }
  put_all(s.type, dx, din);
}

void backward_weights(const RnnSizes& s, const void* x, const void* hx, const void* y, void* gradients,
                      float* reserve) {
  const std::vector<float> in = get_all(s.type, x, s.x()), out = get_all(s.type, y, s.y());
  const std::vector<float> h0 = get_all(s.type, hx, s.state());
  for (size_t number = 0; number < 2 * s.gates(); ++number) {
    const bool of_input = number < s.gates();
    const size_t g = number % s.gates(), n = of_input ? s.in : s.hidden;
    std::vector<double> matrix(s.hidden * n), bias(s.hidden);
    for (size_t t = 0; t < s.steps; ++t) {
      for (size_t b = 0; b < s.batch; ++b) {
        const Reserved r(s, reserve, t, b);
        const float* const d = (of_input ? r.from_input : r.from_state) + g * s.hidden;
        const float* const from = of_input ? in.data() + (t * s.batch + b) * s.in
                                  : t > 0  ? out.data() + ((t - 1) * s.batch + b) * s.hidden
                                           : h0.data() + b * s.hidden;
        for (size_t i = 0; i < s.hidden; ++i) {
          bias[i] += static_cast<double>(d[i]);
          for (size_t j = 0; j < n; ++j) matrix[i * n + j] += s.factor(d[i]) * s.factor(from[j]);
        }
      }
    }
    const auto add = [&](size_t at, const std::vector<double>& values) {
      for (size_t i = 0; i < values.size(); ++i) {
        put(s.type, gradients, at + i,
            static_cast<float>(static_cast<double>(get(s.type, gradients, at + i)) + values[i]));
      }
    };
    add(s.matrix_at(number), matrix);
    if (s.biases) add(s.bias_at(number), bias);
  }
}

RnnSizes sizes_of(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x) {
  require_dnn(handle);
  require_set(rnn, "descriptor of a recurrent layer");
  const auto size = [](int n) { return static_cast<size_t>(n); };
  const Element type = dnn_element(rnn->type);
  RnnSizes s{rnn->cell,
             rnn->biases,
             type,
             0,
             0,
             size(rnn->in),
             size(rnn->hidden),
             machine().options.weight_gap / size_of(type),
             rnn->tf32};
  if (x == nullptr) return s;
  require_set(x, "descriptor of sequences");
  if (x->type != rnn->type || x->width != rnn->in) refuse(CUDNN_STATUS_BAD_PARAM, "sequences of another layer");
  s.steps = size(x->steps);
  s.batch = size(x->batch);
  return s;
}

// The arguments that all passes have in common.
struct Passed {
  cudnnRNNDataDescriptor_t y;
  cudnnTensorDescriptor_t state;
  const int32_t* lengths;
  size_t weight_bytes;
  const void* weights;
  size_t work_bytes;
  void* work;
  size_t reserve_bytes;
  void* reserve;
  bool training;
};

void require(const RnnSizes& s, const Passed& p) {
  constexpr int kBad = CUDNN_STATUS_BAD_PARAM;
  require_set(p.y, "descriptor of sequences");
  require_set(p.state, "tensor descriptor");
  if (static_cast<size_t>(p.y->width) != s.hidden || static_cast<size_t>(p.y->steps) != s.steps) {
    refuse(kBad, "the output's descriptor is another layer's");
  }
  const std::vector<int> expected{1, static_cast<int>(s.batch), static_cast<int>(s.hidden)};
  if (p.state->sizes != expected) refuse(kBad, "the state's descriptor is another layer's");
  if (p.weight_bytes != s.weight_bytes()) refuse(kBad, "the weight space has another size");
  if (p.work_bytes < s.work_bytes()) refuse(kBad, "the workspace is too small");
  if (p.training && p.reserve_bytes < s.reserve_bytes()) refuse(kBad, "the reserve is too small");
  require_device(kBad, "the lengths", p.lengths, s.batch * sizeof(int32_t));
  require_device(kBad, "the weight space", p.weights, p.weight_bytes, size_of(s.type));
  require_device(kBad, "the workspace", p.work, p.work_bytes, 16);
  if (p.training) require_device(kBad, "the reserve", p.reserve, p.reserve_bytes, 16);
}

void require_data(const RnnSizes& s, const char* what, const void* pointer, size_t numel) {
  require_device(CUDNN_STATUS_BAD_PARAM, what, pointer, numel * size_of(s.type), size_of(s.type));
}

void require_lengths(const RnnSizes& s, const int32_t* lengths) {
  const bool all =
      std::all_of(lengths, lengths + s.batch, [&](int32_t n) { return static_cast<size_t>(n) == s.steps; });
  if (!all) refuse(0, "the lengths on the device are not those of the descriptor");
}

}  // namespace
}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnn) { return create("cudnnCreateRNNDescriptor", rnn); }

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnn) { return destroy("cudnnDestroyRNNDescriptor", rnn); }

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* data) {
  return create("cudnnCreateRNNDataDescriptor", data);
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
  return destroy("cudnnDestroyRNNDataDescriptor", data);
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t cell,
                                       cudnnRNNBiasMode_t biases, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t math_precision,
                                       cudnnMathType_t math, int32_t in, int32_t hidden, int32_t projection,
                                       int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t) {
  return dnn_call("cudnnSetRNNDescriptor_v8", [&] {
    require_set(dropout, "dropout descriptor");
    dnn_element(type);
    if (type == CUDNN_DATA_BFLOAT16 && machine().options.cudnn < 91300) {
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "recurrent layers are fp32 or fp16 in this version");
    }
    if (in < 1 || hidden < 1) refuse(CUDNN_STATUS_BAD_PARAM, "{} inputs and {} units", in, hidden);
    if (algorithm != CUDNN_RNN_ALGO_STANDARD || direction != CUDNN_UNIDIRECTIONAL || input != CUDNN_LINEAR_INPUT ||
        projection != hidden || layers != 1 || math_precision != CUDNN_DATA_FLOAT ||
        (biases != CUDNN_RNN_DOUBLE_BIAS && biases != CUDNN_RNN_NO_BIAS)) {
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has single layers in one direction only");
    }
    if ((type == CUDNN_DATA_FLOAT) == (math == CUDNN_TENSOR_OP_MATH)) {
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "this arithmetic does not go with this type");
    }
    const bool tf32 = type == CUDNN_DATA_FLOAT && math == CUDNN_DEFAULT_MATH;
    *rnn = {true, cell, biases == CUDNN_RNN_DOUBLE_BIAS, type, in, hidden, tf32};
  });
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch, int width,
                                        const int lengths[], void*) {
  return dnn_call("cudnnSetRNNDataDescriptor", [&] {
    dnn_element(type);
    if (steps < 1 || batch < 1 || width < 1) refuse(CUDNN_STATUS_BAD_PARAM, "a size is not positive");
    const bool same = std::all_of(lengths, lengths + batch, [steps](int n) { return n == steps; });
    if (layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED || !same) {
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has packed sequences of one length only");
    }
    *data = {true, type, steps, batch, width};
  });
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, size_t* bytes) {
  return dnn_call("cudnnGetRNNWeightSpaceSize", [&] { *bytes = sizes_of(handle, rnn, nullptr).weight_bytes(); });
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x, size_t* work, size_t* reserve) {
  return dnn_call("cudnnGetRNNTempSpaceSizes", [&] {
    const RnnSizes s = sizes_of(handle, rnn, x);
    *work = s.work_bytes();
    *reserve = mode == CUDNN_FWD_MODE_TRAINING ? s.reserve_bytes() : 0;
  });
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t layer, size_t bytes,
                                      const void* space, int32_t number, cudnnTensorDescriptor_t matrix_desc,
                                      void** matrix, cudnnTensorDescriptor_t bias_desc, void** bias) {
  return dnn_call("cudnnGetRNNWeightParams", [&] {
    const RnnSizes s = sizes_of(handle, rnn, nullptr);
    if (layer != 0 || number < 0 || static_cast<size_t>(number) >= 2 * s.gates() || bytes != s.weight_bytes()) {
      refuse(CUDNN_STATUS_BAD_PARAM, "there are no such weights");
    }
    const auto n = static_cast<size_t>(number);
    const auto describe = [&](cudnnTensorDescriptor_t tensor, int rows, int columns) {
      *tensor = {true, rnn->type, {1, rows, columns}, {rows * columns, columns, 1}};
    };
    const auto address = [&](size_t element) {
      return const_cast<std::byte*>(static_cast<const std::byte*>(space)) + element * size_of(s.type);
    };
    describe(matrix_desc, rnn->hidden, static_cast<int>(n < s.gates() ? s.in : s.hidden));
    *matrix = address(s.matrix_at(n));
    *bias = nullptr;
    if (!s.biases) return;
    describe(bias_desc, rnn->hidden, 1);
    *bias = address(s.bias_at(n));
  });
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                              const int32_t lengths[], cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y, cudnnTensorDescriptor_t h_desc, const void* hx,
                              void* hy, cudnnTensorDescriptor_t, const void* cx, void* cy, size_t weight_bytes,
                              const void* weights, size_t work_bytes, void* work, size_t reserve_bytes, void* reserve) {
  return dnn_call("cudnnRNNForward", [&] {
    const RnnSizes s = sizes_of(handle, rnn, x_desc);
    const bool training = mode == CUDNN_FWD_MODE_TRAINING;
    require(s, {y_desc, h_desc, lengths, weight_bytes, weights, work_bytes, work, reserve_bytes, reserve, training});
    require_data(s, "x", x, s.x());
    require_data(s, "y", y, s.y());
    for (const void* const state : {hx, static_cast<const void*>(hy), cx, static_cast<const void*>(cy)}) {
      require_data(s, "the state", state, s.state());
    }
    machine().enqueue(handle->stream, "cudnnRNNForward", [=] {
      require_lengths(s, lengths);
      spoil(work, work_bytes);
      forward(s, x, y, hx, hy, cx, cy, weights, training ? static_cast<float*>(reserve) : nullptr);
    });
  });
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
                                      cudnnRNNDataDescriptor_t y_desc, const void* y, const void* dy,
                                      cudnnRNNDataDescriptor_t x_desc, void* dx, cudnnTensorDescriptor_t h_desc,
                                      const void* hx, const void* dhy, void* dhx, cudnnTensorDescriptor_t,
                                      const void* cx, const void* dcy, void* dcx, size_t weight_bytes,
                                      const void* weights, size_t work_bytes, void* work, size_t reserve_bytes,
                                      void* reserve) {
  return dnn_call("cudnnRNNBackwardData_v8", [&] {
    const RnnSizes s = sizes_of(handle, rnn, x_desc);
    require(s, {y_desc, h_desc, lengths, weight_bytes, weights, work_bytes, work, reserve_bytes, reserve, true});
    if (dhy != nullptr || dhx != nullptr || dcy != nullptr || dcx != nullptr) {
      refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no gradients of states");
    }
    require_data(s, "y", y, s.y());
    require_data(s, "dy", dy, s.y());
    require_data(s, "dx", dx, s.x());
    require_data(s, "the state", hx, s.state());
    require_data(s, "the state", cx, s.state());
    machine().enqueue(handle->stream, "cudnnRNNBackwardData_v8", [=] {
      require_lengths(s, lengths);
      spoil(work, work_bytes);
      backward_data(s, y, dy, dx, hx, cx, weights, static_cast<float*>(reserve));
    });
  });
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
                                         const int32_t lengths[], cudnnRNNDataDescriptor_t x_desc, const void* x,
                                         cudnnTensorDescriptor_t h_desc, const void* hx,
                                         cudnnRNNDataDescriptor_t y_desc, const void* y, size_t weight_bytes,
                                         void* gradients, size_t work_bytes, void* work, size_t reserve_bytes,
                                         void* reserve) {
  return dnn_call("cudnnRNNBackwardWeights_v8", [&] {
    const RnnSizes s = sizes_of(handle, rnn, x_desc);
    require(s, {y_desc, h_desc, lengths, weight_bytes, gradients, work_bytes, work, reserve_bytes, reserve, true});
    if (mode != CUDNN_WGRAD_MODE_ADD) refuse(CUDNN_STATUS_NOT_SUPPORTED, "gradients are added to what is there");
    require_data(s, "x", x, s.x());
    require_data(s, "y", y, s.y());
    require_data(s, "the state", hx, s.state());
    machine().enqueue(handle->stream, "cudnnRNNBackwardWeights_v8", [=] {
      require_lengths(s, lengths);
      backward_weights(s, x, hx, y, gradients, static_cast<float*>(reserve));
      spoil(work, work_bytes);
    });
  });
}
