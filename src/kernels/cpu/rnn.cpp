// The input products of all steps are one matrix product, in a long evaluation several, as are the gradients of the
// weights. What remains between one step and the next is the recurrent product and one loop over the gates
// (rnn_cells.h).
#include <algorithm>

#include "kernels/carver.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/rnn_cells.h"

namespace dgc {
namespace {

int64_t state_size(const RnnArgs& a) { return a.batch * a.hidden; }
bool is_lstm(const RnnArgs& a) { return a.cell == RnnCell::lstm; }
bool is_gru(const RnnArgs& a) { return a.cell == RnnCell::gru; }
bool has_extra(const RnnArgs& a) { return is_lstm(a) || is_gru(a); }

// Evaluation computes the input products of a stretch of so many steps at once, and of up to twice as many at the end.
// With fewer rows oneDNN may add up a row in another order than with more.
int64_t steps_of_stretch(const RnnArgs& a, bool training) {
  constexpr int64_t kFewestRows = 2048, kGates = int64_t{8} * 1024 * 1024;  // floats
  const int64_t rows = std::max(kFewestRows, kGates / a.gates());
  return training ? a.steps : (rows + a.batch - 1) / a.batch;
}

int64_t end_of_stretch(const RnnArgs& a, bool training, int64_t first) {
  const int64_t steps = steps_of_stretch(a, training);
  return a.steps - first < 2 * steps ? a.steps : first + steps;
}

// What the forward pass keeps for the backward pass. In evaluation there is memory for the gates of a stretch, and for
// one step of extra and c.
struct Saved {
  Saved(const RnnArgs& a, bool training, Carver memory)
      : gates(memory.take<float>(std::min(a.steps, 2 * steps_of_stretch(a, training)) * a.batch * a.gates())),
        extra(memory.take<float>(has_extra(a) ? (training ? a.steps : 1) * state_size(a) : 0)),
        c(memory.take<float>(is_lstm(a) ? (training ? a.steps + 1 : 1) * state_size(a) : 0)),
        h_before(memory.take<float>(state_size(a))),
        bytes(memory.bytes()) {}
  float* gates;     // [steps of a stretch, batch, gates]; training has one stretch
  float* extra;     // [steps, batch, hidden]
  float* c;         // [1 + steps, batch, hidden]: the first is the state before
  float* h_before;  // [batch, hidden]: the state before the first step
  size_t bytes;
};

struct ForwardScratch {
  ForwardScratch(const RnnArgs& a, const StepProduct& product, bool training, Carver memory)
      : bias(memory.take<float>(a.gates())),
        weights(memory.take<std::byte>(static_cast<int64_t>(product.weights.bytes))),
        room(memory.take<std::byte>(static_cast<int64_t>(product.scratchpad_bytes))),
        recurrent(memory.take<float>(is_gru(a) ? a.batch * a.gates() : 0)),
        kept(memory.take<std::byte>(training ? 0 : static_cast<int64_t>(Saved(a, false, Carver()).bytes))),
        bytes(memory.bytes()) {}
  float* bias;
  std::byte* weights;
  std::byte* room;
  float* recurrent;  // gru: the product of one step, which the reset gate keeps apart from the input's
  std::byte* kept;   // in evaluation: what training saves
  size_t bytes;
};

struct BackwardScratch {
  BackwardScratch(const RnnArgs& a, Carver memory)
      : dh(memory.take<float>(state_size(a))), dc(memory.take<float>(state_size(a))), bytes(memory.bytes()) {}
  float *dh, *dc;  // [batch, hidden]: the gradients of the state behind a step
  size_t bytes;
};

constexpr int64_t kElementsPerChunk = 2048;  // some microseconds of work

template <typename Body>
void for_rows(const RnnArgs& a, const Body& body) {
  for_chunks(a.batch, std::max<int64_t>(1, kElementsPerChunk / a.hidden), [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) body(row);
  });
}

void start_state(View from, int64_t n, float* to) {
  if (from) {
    std::copy_n(from.f32(), n, to);
  } else {
    std::fill_n(to, n, 0.f);
  }
}

// The gru's third gate has the recurrent bias in its recurrent product.
void start_bias(const RnnArgs& a, const RnnWeights& w, float* bias) {
  std::fill_n(bias, a.gates(), 0.f);
  if (!a.biases) return;
  const int64_t both = is_gru(a) ? 2 * a.hidden : a.gates();
  for (int64_t i = 0; i < both; ++i) bias[i] = w.b_ih.f32()[i] + w.b_hh.f32()[i];
  for (int64_t i = both; i < a.gates(); ++i) bias[i] = w.b_ih.f32()[i];
}

void start_recurrent(const RnnArgs& a, const RnnWeights& w, float* recurrent) {
  std::fill_n(recurrent, a.batch * a.gates(), 0.f);
  if (!a.biases) return;
  for_rows(a, [&](int64_t row) {
    std::copy_n(w.b_hh.f32() + 2 * a.hidden, a.hidden, recurrent + row * a.gates() + 2 * a.hidden);
  });
}

// The gradients of the recurrent products: columns [first, first + columns) of all gates.
struct RecurrentGradient {
  const float* data;
  int64_t row_length, first, columns;
};

struct RecurrentGradients {
  RecurrentGradients(const RnnArgs& a, const Saved& kept)
      : parts{{kept.gates, a.gates(), 0, is_gru(a) ? 2 * a.hidden : a.gates()},
              {kept.extra, a.hidden, 2 * a.hidden, a.hidden}},
        count(is_gru(a) ? 2 : 1) {}
  RecurrentGradient parts[2];
  int count;
  const RecurrentGradient* begin() const { return parts; }
  const RecurrentGradient* end() const { return parts + count; }
};

}  // namespace

size_t CpuBackend::rnn_saved_bytes(const RnnArgs& args, DType) { return Saved(args, true, Carver()).bytes; }

void CpuBackend::rnn_forward(const RnnArgs& a, ConstView x, const RnnWeights& w, const RnnState& state, View y,
                             View saved) {
  const int64_t size = state_size(a), gates_of_row = a.gates();
  const bool training = static_cast<bool>(saved);
  const StepProduct& step_product = dnnl_->step_product({.rows = a.batch, .columns = gates_of_row, .inner = a.hidden});
  const ForwardScratch memory(a, step_product, training,
                              Carver(scratch(ForwardScratch(a, step_product, training, Carver()).bytes)));
  const Saved kept(a, training, Carver(training ? saved.data : memory.kept));
  start_state(state.h, size, kept.h_before);
  if (is_lstm(a)) start_state(state.c, size, kept.c);
  start_bias(a, w, memory.bias);

  dnnl_->read(step_product.weights, w.w_hh.f32(), memory.weights);
  const float* h_before = kept.h_before;
  for (int64_t t = 0, first = 0, end = 0; t < a.steps; ++t) {
    if (t == end) {
      first = end;
      end = end_of_stretch(a, training, first);
      product((end - first) * a.batch, gates_of_row, a.in, {x.f32() + first * a.batch * a.in, a.in},
              {w.w_ih.f32(), a.in, 'T'}, false, kept.gates);
    }
    float* const at = kept.gates + (t - first) * a.batch * gates_of_row;
    float* const out = y.f32() + t * size;
    const int64_t step = training ? t : 0;  // each step's cells overwrite those of the step before
    const float* const c_before = kept.c + step * size;
    float* const c_now = kept.c + (training ? t + 1 : 0) * size;
    float* const extra = kept.extra + step * size;
    if (is_gru(a)) start_recurrent(a, w, memory.recurrent);
    dnnl_->add_step_product(step_product, h_before, is_gru(a) ? memory.recurrent : at, memory.room);
    for_rows(a, [&](int64_t row) {
      const int64_t i = row * a.hidden, gate = row * gates_of_row;
      rnn_forward_row(a.cell, {a.hidden, memory.bias, memory.recurrent + gate, h_before + i, c_before + i, at + gate,
                               c_now + i, extra + i, out + i});
    });
    h_before = out;
  }
  if (state.h) std::copy_n(h_before, size, state.h.f32());
  if (state.c) std::copy_n(kept.c + (training ? a.steps : 0) * size, size, state.c.f32());
}

void CpuBackend::rnn_backward(const RnnArgs& a, ConstView x, const RnnWeights& w, ConstView y, View saved, ConstView dy,
                              View dx, const RnnGradients& d) {
  const int64_t rows = a.steps * a.batch, size = state_size(a), gates_of_row = a.gates();
  const Saved kept(a, true, Carver(saved.data));
  const BackwardScratch memory(a, Carver(scratch(BackwardScratch(a, Carver()).bytes)));
  float *const dh = memory.dh, *const dc = memory.dc;
  std::fill_n(dh, size, 0.f);
  std::fill_n(dc, size, 0.f);
  const RecurrentGradients recurrent(a, kept);  // valid once the loop below has written the gradients

  for (int64_t t = a.steps; t-- > 0;) {
    float* const at = kept.gates + t * a.batch * gates_of_row;
    const float* const from = dy.f32() + t * size;
    const float* const h_before = t == 0 ? kept.h_before : y.f32() + (t - 1) * size;
    for_rows(a, [&](int64_t row) {
      const int64_t i = row * a.hidden, all = t * size + i;
      rnn_backward_row(a.cell, {a.hidden, h_before + i, kept.c + all, from + i, dh + i, dc + i, kept.extra + all,
                                at + row * gates_of_row});
    });
    if (t == 0) break;
    bool add = is_gru(a);
    for (const RecurrentGradient& part : recurrent) {
      multiply_exactly(a.batch, a.hidden, part.columns, {part.data + t * a.batch * part.row_length, part.row_length},
                       {w.w_hh.f32() + part.first * a.hidden, a.hidden}, add, dh);
      add = true;
    }
  }

  const float* const gates = kept.gates;  // by now the gradients of the gates
  if (dx) product(rows, a.in, gates_of_row, {gates, gates_of_row}, {w.w_ih.f32(), a.in}, false, dx.f32());
  product(gates_of_row, a.in, rows, {gates, gates_of_row, 'T'}, {x.f32(), a.in}, true, d.w_ih.f32());
  if (a.biases) add_column_sums({gates, gates_of_row}, rows, gates_of_row, d.b_ih.f32());
  for (const RecurrentGradient& part : recurrent) {
    float* const to = d.w_hh.f32() + part.first * a.hidden;
    const auto add = [&](int64_t first, int64_t count, const float* h) {
      const float* const from = part.data + first * part.row_length;
      product(part.columns, a.hidden, count, {from, part.row_length, 'T'}, {h, a.hidden}, true, to);
    };
    add(0, a.batch, kept.h_before);
    if (a.steps > 1) add(a.batch, rows - a.batch, y.f32());
    if (a.biases) add_column_sums({part.data, part.row_length}, rows, part.columns, d.b_hh.f32() + part.first);
  }
}

}  // namespace dgc
