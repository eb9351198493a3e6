#pragma once

#include <functional>
#include <vector>

#include "models/memory_plan.h"
#include "models/network.h"

namespace dgc {

// Replaces `uses` by the weights of a network's convolutions, and their gradients unless `gradients` is null, for
// Backend::with_filters. The caller keeps `uses` from step to step, so that only the first one allocates.
void find_filters(const Network&, const Arena& weights, const Arena* gradients, std::vector<FilterUse>& uses);

// Runs a network at one batch size. The constructor decides which activations live until backward, which memory each
// gradient gets, and where gradients are added up, so that a step takes no memory of a size that the network sets.
//
// The network and the backend must outlive the executor. Weights, statistics and gradients belong to the caller and may
// differ from call to call, so one executor serves several workers, one after another.
class Executor {
 public:
  enum class Mode { training, evaluation };

  // activations: the type of all computed tensors and, unless it is tokens, of the input. The backend must support the
  // type. Throws as Network::shapes() does, and UserError where the backend cannot train a layer.
  Executor(const Network&, Backend&, int64_t batch, Mode, DType activations = DType::f32);

  int64_t batch() const { return batch_; }
  size_t activation_bytes() const { return plan_.bytes(); }
  // Attaches memory of activation_bytes(), which other executors may use between one forward-backward and the next.
  void attach(void* memory);

  // Returns the output, valid until the next call. x [batch, ...] must stay untouched until backward() has returned,
  // and run must name the worker's state where the network has one.
  View forward(const Arena& weights, const Arena& buffers, ConstView x, const RunContext&);

  // What the loss needs beside the output.
  struct Target {
    ConstView labels;  // LossArgs::labels
    double* stats;     // device memory [3], overwritten: Backend::softmax_cross_entropy
    float gradient_scale = 1;
    const StepControl* control = nullptr;
    ConstView lengths = {};  // lengths of padded sequences, as RunContext::lengths
  };
  // To be called between forward() and backward(). Computes the loss and the gradient of the output, and ADDS the
  // gradients of the loss's parameters.
  void loss(const Arena& weights, const Arena& gradients, const Target&);
  // To be called after a forward(). Computes the loss alone.
  void loss(const Arena& weights, const Target&);
  // Writes the logits of the last output, of Loss::logits_shape(), to `to`.
  void logits(const Arena& weights, View to);

  // A caller with a loss of its own writes the gradient of the output here instead of calling loss().
  View output_gradient() const;

  // ADDS the gradients of all trained parameters; those of frozen ones mean nothing. ready(first) is called as soon as
  // the gradients of all parameters from `first` on are complete, layer by layer, down to the first trained parameter.
  // The gradients of parameters that the loss shares are complete with those of their layer. Where `ready` is empty,
  // gradients need not be complete before the end, which saves a GPU launches.
  void backward(const Arena& weights, const Arena& gradients, ConstView x, const RunContext&,
                const std::function<void(int first)>& ready);

 private:
  static constexpr int kNone = -1;

  // The blocks that a node uses, as numbers in plan_.
  struct Step {
    int saved = kNone;
    std::vector<int> dx;      // per input; kNone: not wanted
    std::vector<int> add_to;  // per input; kNone, or the block to which dx is added afterwards
  };

  void plan_activations();
  void plan_gradients();
  void run_forward(const Arena& weights, const Arena& buffers, ConstView x, const RunContext&);
  void run_backward(const Arena& weights, const Arena& gradients, ConstView x, const RunContext&,
                    const std::function<void(int first)>& ready);
  // Computes the loss alone when dx is null.
  void run_loss(const Arena& weights, const Target&, View dx, std::span<const View> dparams);
  int forward_time(size_t node) const { return static_cast<int>(node); }
  int loss_time() const { return static_cast<int>(network_.nodes().size()); }
  int backward_time(size_t node) const { return 2 * loss_time() - static_cast<int>(node); }
  size_t tensor_bytes(int tensor) const;
  const Shape& shape(int tensor) const { return shapes_[static_cast<size_t>(tensor)]; }
  View block_view(int block, const Shape& shape) const;
  ConstView tensor_view(int tensor, ConstView x) const;
  View output() const;
  void check_input(ConstView x) const;

  const Network& network_;
  Backend& backend_;
  int64_t batch_;
  std::vector<Shape> shapes_;  // per tensor
  Mode mode_;
  DType activations_;
  MemoryPlan plan_;
  std::byte* memory_ = nullptr;
  std::vector<FilterUse> filters_;  // of the pass under way
  std::vector<Step> steps_;         // per node
  std::vector<int> activation_;     // per tensor; kNone for the input
  std::vector<int> gradient_;       // per tensor; kNone where none is wanted
  int loss_scratch_ = kNone;
};

}  // namespace dgc
