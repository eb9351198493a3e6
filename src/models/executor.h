#pragma once

#include <functional>
#include <vector>

#include "models/memory_plan.h"
#include "models/network.h"

namespace dgc {

// Runs a network at one batch size. Everything that can be decided beforehand is: which activations live until
// backward, which memory each gradient gets, where gradients are added up. A step allocates nothing.
//
// The network and the backend must outlive it. Weights, statistics and gradients belong to the caller and may differ
// from call to call, so one executor serves all workers of a rank.
class Executor {
 public:
  enum class Mode { training, evaluation };

  // activations: the type of the input and of all that is computed from it (Backend::supports).
  Executor(const Network&, Backend&, int64_t batch, Mode, DType activations = DType::f32);

  int64_t batch() const { return batch_; }
  size_t activation_bytes() const { return plan_.bytes(); }
  // Memory of activation_bytes(), which other executors may use between one forward-backward and the next.
  void attach(void* memory);

  // Returns the output, valid until the next call. x [batch, ...] must stay untouched until backward() has returned.
  View forward(const Arena& weights, const Arena& buffers, ConstView x, const RunContext&);

  // Where the loss writes the gradient of the output, between forward() and backward().
  View output_gradient() const;

  // ADDS the gradients of all parameters. ready(first, count) is called as soon as those of parameters
  // [first, first + count) are complete, last layer first.
  void backward(const Arena& weights, const Arena& gradients, ConstView x, const RunContext&,
                const std::function<void(int first, int count)>& ready);

 private:
  static constexpr int kNone = -1;

  // Where a node finds what it needs; numbers of blocks in plan_.
  struct Step {
    int saved = kNone;
    std::vector<int> dx;      // per input; kNone: not wanted
    std::vector<int> add_to;  // per input; kNone, or the block to which dx is added afterwards
  };

  void plan_activations();
  void plan_gradients();
  int forward_time(size_t node) const { return static_cast<int>(node); }
  int loss_time() const { return static_cast<int>(network_.nodes().size()); }
  int backward_time(size_t node) const { return 2 * loss_time() - static_cast<int>(node); }
  size_t tensor_bytes(int tensor) const;
  View block_view(int block, const Shape& shape) const;
  ConstView tensor_view(int tensor, ConstView x) const;

  const Network& network_;
  Backend& backend_;
  int64_t batch_;
  Mode mode_;
  DType activations_;
  MemoryPlan plan_;
  std::byte* memory_ = nullptr;
  std::vector<Step> steps_;      // per node
  std::vector<int> activation_;  // per tensor; kNone for the input
  std::vector<int> gradient_;    // per tensor; kNone where none is wanted
};

}  // namespace dgc
