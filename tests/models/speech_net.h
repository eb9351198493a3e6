#pragma once

#include <functional>
#include <vector>

#include "tests/kernels/on_device.h"
#include "tests/models/net_memory.h"

namespace dgc {

struct Utterances {
  std::vector<int32_t> lengths;              // in frames
  std::vector<std::vector<int32_t>> labels;  // of each
};

// A speech model with all the memory it runs in, for training and evaluation, and a batch of utterances whose frames
// are a function of utterance, frame and frequency alone, whatever they are padded to.
class SpeechNet : public NetMemory {
 public:
  // behind: what lies behind each utterance's end.
  SpeechNet(const Network& net, Backend& backend, int64_t steps, const Utterances& utterances, float behind = 0)
      : NetMemory(net, backend),
        backend_(backend),
        net_(net),
        training_(net, backend, steps, Executor::Mode::training),
        evaluation_(net, backend, steps, Executor::Mode::evaluation),
        buffers_layout_(net.buffers()),
        buffers_(backend.device(), buffers_layout_),
        x_shape_(net.shape(0, steps)),
        x_(backend, frames(utterances, behind)),
        lengths_(backend, utterances.lengths),
        labels_(backend, label_rows(utterances)),
        most_labels_(label_rows(utterances).size() / utterances.labels.size() - 1),
        stats_(backend, {7, 7, 7}) {
    share({&training_, &evaluation_});
    initialize(buffers_, 1);
    for (int i = 0; i < layout.size(); ++i) {
      write(weights, i, random_floats(layout.numel(i), static_cast<unsigned>(i + 1), -1, 1));
      // Far from the kinks of hardtanh, which finite differences stumble over, and from where gates saturate.
      const std::string& name = layout.spec(i).name;
      const auto all = [&](float value) {
        write(weights, i, std::vector<float>(static_cast<size_t>(layout.numel(i)), value));
      };
      if (name.starts_with("conv") && name.ends_with("norm.weight")) all(0.3f);
      if (name.starts_with("conv") && name.ends_with("norm.bias")) all(1.5f);
    }
  }

  struct Result {
    double loss, counted, left_out;
  };

  // Forward, loss and backward, into gradients that start at 0.
  Result train(const std::function<void(int)>& ready = [](int) {}) {
    backend_.device()->zero(gradients.data(), gradients.bytes());
    const RunContext run{.lengths = lengths()};
    training_.forward(weights, buffers_, x(), run);
    training_.loss(weights, gradients, {.labels = labels(), .stats = stats_.data(), .lengths = lengths()});
    training_.backward(weights, gradients, x(), run, ready);
    return result();
  }

  Result evaluate() {
    logits_ = evaluation_.forward(weights, buffers_, x(), {.training = false, .lengths = lengths()});
    evaluation_.loss(weights, {.labels = labels(), .stats = stats_.data(), .lengths = lengths()});
    return result();
  }

  // Of the last evaluation: those of one stream, step after step.
  std::vector<float> logits(int64_t stream) {
    const Shape& shape = logits_.shape;
    std::vector<float> all(static_cast<size_t>(shape.numel())), own;
    backend_.device()->copy_out(all.data(), logits_.data, all.size() * sizeof(float));
    for (int64_t t = 0; t < shape[0]; ++t) {
      const auto first = all.begin() + (t * shape[1] + stream) * shape[2];
      own.insert(own.end(), first, first + shape[2]);
    }
    return own;
  }

 private:
  std::vector<float> frames(const Utterances& utterances, float behind) const {
    std::vector<float> x;
    for (int64_t t = 0; t < x_shape_[0]; ++t) {
      for (int64_t s = 0; s < x_shape_[1]; ++s) {
        const bool valid = t < utterances.lengths[static_cast<size_t>(s)];
        for (int64_t f = 0; f < x_shape_[2]; ++f) {
          const auto phase = static_cast<float>(utterances.lengths[static_cast<size_t>(s)] * 7 + t * t * 3 + f * 5);
          x.push_back(valid ? std::sin(phase) : behind);
        }
      }
    }
    return x;
  }
  static std::vector<int32_t> label_rows(const Utterances& utterances) {
    size_t most = 0;
    for (const auto& labels : utterances.labels) most = std::max(most, labels.size());
    std::vector<int32_t> rows;
    for (const auto& labels : utterances.labels) {
      rows.push_back(static_cast<int32_t>(labels.size()));
      rows.insert(rows.end(), labels.begin(), labels.end());
      rows.resize(rows.size() + most - labels.size());
    }
    return rows;
  }
  ConstView x() const { return {x_.view().data, x_shape_}; }
  ConstView lengths() const { return {lengths_.data(), {x_shape_[1]}, DType::i32}; }
  ConstView labels() const {
    return {labels_.data(), {x_shape_[1], static_cast<int64_t>(1 + most_labels_)}, DType::i32};
  }
  Result result() const {
    const auto sums = stats_.host();
    return {sums[0], sums[1], sums[2]};
  }

  Backend& backend_;
  const Network& net_;
  Executor training_, evaluation_;
  ParamLayout buffers_layout_;
  Arena buffers_;
  Shape x_shape_;
  OnDevice x_;
  ValuesOnDevice<int32_t> lengths_, labels_;
  size_t most_labels_;
  ValuesOnDevice<double> stats_;
  View logits_;
};

}  // namespace dgc
