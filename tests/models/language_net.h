#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tests/kernels/on_device.h"
#include "tests/models/net_memory.h"

namespace dgc {

// A language model with all the memory it runs in, for training and evaluation, and a short text. Weights are larger
// than a real model starts with, so that every part of it matters.
class LanguageNet : public NetMemory {
 public:
  LanguageNet(const Network& net, Backend& backend, int64_t steps)
      : NetMemory(net, backend),
        backend_(backend),
        net_(net),
        training_(net, backend, steps, Executor::Mode::training),
        evaluation_(net, backend, steps, Executor::Mode::evaluation),
        buffers_layout_(net.buffers()),
        state_layout_(net.state()),
        buffers_(backend.device(), buffers_layout_),
        state_(backend.device(), state_layout_),
        classes_(net.loss().logits_shape(net.shape(net.output()))[1]),
        rows_(net.shape(0, steps).numel()),
        streams_(net.shape(0)[1]),
        tokens_(backend.device(), static_cast<size_t>(rows_) * sizeof(int32_t)),
        labels_(backend.device(), static_cast<size_t>(rows_) * sizeof(int32_t)),
        stats_(backend.device(), 3 * sizeof(double)) {
    share({&training_, &evaluation_});
    for (int i = 0; i < layout.size(); ++i) {
      write(weights, i, random_floats(layout.numel(i), static_cast<unsigned>(i + 1), -1, 1));
    }
    for (int64_t i = 0; i < rows_ + streams_; ++i)
      words_.push_back(static_cast<int32_t>(i * i * 7 % 29 % (classes_ - 1)));
    load_words();
  }

  struct Result {
    double loss = 0;  // mean over rows
  };

  // Forward, loss and backward from a fresh state, into gradients that start at 0.
  Result train(const std::function<void(int)>& ready = [](int) {}) {
    forget();
    backend_.device()->zero(gradients.data(), gradients.bytes());
    const RunContext run{.seed = 5, .state = &state_};
    training_.forward(weights, buffers_, tokens(), run);
    training_.loss(weights, gradients, {label_view(), stats(), 1.f / static_cast<float>(rows_)});
    training_.backward(weights, gradients, tokens(), run, ready);
    return result();
  }

  Result evaluate() {
    forget();
    return go_on();
  }
  // From the state that the pass before has left.
  Result go_on() {
    evaluation_.forward(weights, buffers_, tokens(), {.training = false, .state = &state_});
    evaluation_.loss(weights, {label_view(), stats()});
    return result();
  }

  // Of rows of the last evaluation.
  std::vector<float> logits(int64_t first, int64_t rows) {
    const OnDevice to(backend_, zeros(rows_ * classes_));
    evaluation_.logits(weights, {to.view().data, {rows_, classes_}});
    const std::vector<float> all = to.host();
    return {all.begin() + first * classes_, all.begin() + (first + rows) * classes_};
  }

  const std::vector<int32_t>& words() const { return words_; }  // one row of streams more than the model reads
  std::vector<int32_t> labels() const { return {words_.begin() + streams_, words_.begin() + streams_ + rows_}; }
  void next_words(const std::vector<int32_t>& text, int64_t step) {
    words_.assign(text.begin() + step * streams_, text.end());
    load_words();
  }

 private:
  void forget() { backend_.device()->zero(state_.data(), state_.bytes()); }
  void load_words() {
    backend_.device()->copy_in(tokens_.data(), words_.data(), tokens_.bytes());
    backend_.device()->copy_in(labels_.data(), words_.data() + streams_, labels_.bytes());
  }
  ConstView tokens() const { return {tokens_.data(), net_.shape(0, training_.batch()), DType::i32}; }
  ConstView label_view() const { return {labels_.data(), {rows_}, DType::i32}; }
  double* stats() const { return static_cast<double*>(stats_.data()); }
  Result result() const {
    double sums[3];
    backend_.device()->copy_out(sums, stats_.data(), sizeof(sums));
    return {sums[0] / static_cast<double>(rows_)};
  }

  Backend& backend_;
  const Network& net_;
  Executor training_, evaluation_;
  ParamLayout buffers_layout_, state_layout_;
  Arena buffers_, state_;
  int64_t classes_, rows_, streams_;
  Buffer tokens_, labels_, stats_;
  std::vector<int32_t> words_;
};

}  // namespace dgc
