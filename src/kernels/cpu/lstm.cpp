// The input products of all steps are one matrix product, as are the gradients of the weights. What remains between one
// step and the next is the recurrent product and one loop over the gates.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/lstm_gates.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pieces.h"
#include "kernels/cpu/product.h"

namespace dgc {
namespace {

// What forward leaves for backward.
struct Saved {
  Saved(const LstmArgs& a, Pieces p)
      : gates(p.take(a.steps * a.batch * 4 * a.hidden)),
        tanh_c(p.take(a.steps * a.batch * a.hidden)),
        c(p.take((a.steps + 1) * a.batch * a.hidden)),
        h_before(p.take(a.batch * a.hidden)),
        bytes(p.bytes()) {}
  float* gates;     // [steps, batch, 4 * hidden]
  float* tanh_c;    // [steps, batch, hidden]
  float* c;         // [1 + steps, batch, hidden]: the first is the state before
  float* h_before;  // [batch, hidden]: the state before the first step
  size_t bytes;
};

struct ForwardScratch {
  ForwardScratch(const LstmArgs& a, const StepProduct& product, bool training, Pieces p)
      : bias(p.take(4 * a.hidden)),
        weights(p.take(product.weights_floats)),
        room(p.take(product.scratchpad_floats)),
        gates(p.take(training ? 0 : a.steps * a.batch * 4 * a.hidden)),
        tanh_c(p.take(training ? 0 : a.batch * a.hidden)),
        bytes(p.bytes()) {}
  float* bias;
  float* weights;
  float* room;
  float* gates;   // in training these two
  float* tanh_c;  // lie in what is saved
  size_t bytes;
};

constexpr int64_t kElementsPerChunk = 2048;  // some microseconds of work

template <typename Body>
void for_rows(const LstmArgs& a, const Body& body) {
  for_chunks(a.batch, std::max<int64_t>(1, kElementsPerChunk / a.hidden), [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) body(row);
  });
}

}  // namespace

size_t CpuBackend::lstm_saved_bytes(const LstmArgs& args) { return Saved(args, Pieces(nullptr)).bytes; }

void CpuBackend::lstm_forward(const LstmArgs& a, ConstView x, const LstmWeights& w, View h, View c, View y,
                              View saved) {
  const int64_t rows = a.steps * a.batch, state = a.batch * a.hidden, gates_of_row = 4 * a.hidden;
  const bool training = static_cast<bool>(saved);
  const StepProduct& product = dnnl_->step_product({.rows = a.batch, .columns = gates_of_row, .inner = a.hidden});
  const ForwardScratch memory(a, product, training,
                              Pieces(scratch(ForwardScratch(a, product, training, Pieces(nullptr)).bytes)));
  const Saved kept(a, Pieces(saved.data));
  if (training) {
    std::copy_n(h.f32(), state, kept.h_before);
    std::copy_n(c.f32(), state, kept.c);
  }
  for (int64_t i = 0; i < gates_of_row; ++i) memory.bias[i] = w.b_ih.f32()[i] + w.b_hh.f32()[i];

  float* const gates = training ? kept.gates : memory.gates;
  multiply(rows, gates_of_row, a.in, {x.f32(), a.in}, {w.w_ih.f32(), a.in, 'T'}, 0.f, gates);
  const float* const weights = dnnl_->load_weights(product, w.w_hh.f32(), memory.weights);
  const float* h_before = h.f32();
  for (int64_t t = 0; t < a.steps; ++t) {
    float* const at = gates + t * a.batch * gates_of_row;
    float* const out = y.f32() + t * state;
    // Without a backward pass each step's cells overwrite those of the step before.
    const float* const c_before = training ? kept.c + t * state : c.f32();
    float* const c_now = training ? kept.c + (t + 1) * state : c.f32();
    float* const tanh_c = training ? kept.tanh_c + t * state : memory.tanh_c;
    dnnl_->add_step_product(product, h_before, weights, at, memory.room);
    for_rows(a, [&](int64_t row) {
      const int64_t i = row * a.hidden;
      lstm_forward_row({a.hidden, memory.bias, c_before + i, at + 4 * i, c_now + i, tanh_c + i, out + i});
    });
    h_before = out;
  }
  std::copy_n(h_before, state, h.f32());
  if (training) std::copy_n(kept.c + a.steps * state, state, c.f32());
}

void CpuBackend::lstm_backward(const LstmArgs& a, ConstView x, const LstmWeights& w, ConstView y, View saved,
                               ConstView dy, View dx, const LstmGradients& d) {
  const int64_t rows = a.steps * a.batch, state = a.batch * a.hidden, gates_of_row = 4 * a.hidden;
  const Saved kept(a, Pieces(saved.data));
  Pieces pieces(scratch(2 * static_cast<size_t>(state + 16) * sizeof(float)));
  float *const dh = pieces.take(state), *const dc = pieces.take(state);
  std::fill_n(dh, state, 0.f);
  std::fill_n(dc, state, 0.f);

  for (int64_t t = a.steps; t-- > 0;) {
    float* const at = kept.gates + t * a.batch * gates_of_row;
    const float* const from = dy.f32() + t * state;
    for_rows(a, [&](int64_t row) {
      const int64_t i = row * a.hidden, all = t * state + i;
      lstm_backward_row({a.hidden, kept.c + all, kept.tanh_c + all, from + i, dh + i, dc + i, at + 4 * i});
    });
    if (t > 0) multiply(a.batch, a.hidden, gates_of_row, {at, gates_of_row}, {w.w_hh.f32(), a.hidden}, 0.f, dh);
  }

  const float* const gates = kept.gates;  // their gradients now
  if (dx) multiply(rows, a.in, gates_of_row, {gates, gates_of_row}, {w.w_ih.f32(), a.in}, 0.f, dx.f32());
  multiply(gates_of_row, a.in, rows, {gates, gates_of_row, 'T'}, {x.f32(), a.in}, 1.f, d.w_ih.f32());
  const auto add_recurrent = [&](int64_t count, const float* gradient, const float* h) {
    multiply(gates_of_row, a.hidden, count, {gradient, gates_of_row, 'T'}, {h, a.hidden}, 1.f, d.w_hh.f32());
  };
  add_recurrent(a.batch, gates, kept.h_before);
  if (a.steps > 1) add_recurrent(rows - a.batch, gates + a.batch * gates_of_row, y.f32());
  add_column_sums(gates, rows, gates_of_row, d.b_ih.f32(), d.b_hh.f32());
}

}  // namespace dgc
