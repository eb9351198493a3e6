#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "tensor/params.h"

namespace dgc {

// The settings of a forward or backward pass.
struct RunContext {
  bool training = true;
  uint64_t seed = 0;
  // This batch's first sample has number control->step * samples_per_step + first_sample among all that all workers
  // ever train on. Null: step 0.
  const StepControl* control = nullptr;
  uint64_t samples_per_step = 0;
  uint64_t first_sample = 0;
  // What this worker carries from one call to the next (Layer::state); forward overwrites it. Null where no layer
  // carries state.
  const Arena* state = nullptr;
  // Lengths of sequences that are padded to one length: i32 [streams] on the device, in frames of the network's input
  // (SequenceArgs). Layers that mix steps or streams need them.
  ConstView lengths = {};
};

struct ForwardArgs {
  Backend& backend;
  const RunContext& run;
  std::span<const ConstView> x;
  std::span<const ConstView> params;
  std::span<const View> buffers;
  std::span<const View> state;  // in: from the previous call; out: for the next call
  View y;
  View saved;  // null in evaluation
};

struct BackwardArgs {
  Backend& backend;
  const RunContext& run;
  std::span<const ConstView> x;  // data is null unless keeps_input()
  std::span<const ConstView> params;
  ConstView y;               // data is null unless keeps_output()
  View saved;                // may be written over
  View dy;                   // may be written over
  std::span<const View> dx;  // a null view: not wanted
  // Layer::adds_gradient(): where a view is not null, dx is added there, and the memory of dx may hold anything.
  std::span<const View> add_to = {};
  std::span<const View> dparams;  // gradients are ADDED here
};

// A layer holds its sizes and nothing else: parameters are views into an arena, activations travel in the arguments.
// So a layer is cheap to copy, has no device, and has only const methods.
class Layer {
 public:
  virtual ~Layer() = default;

  virtual int inputs() const { return 1; }
  // The first size is the batch: images, or time steps that are [streams, ...] each. Throws UserError with both shapes
  // when the input does not fit.
  virtual Shape output_shape(std::span<const Shape> in) const = 0;
  virtual std::vector<ParamSpec> params() const { return {}; }  // names within the layer: "weight"
  // A convolution says what filter its first parameter is (Backend::with_filters).
  virtual std::optional<FilterArgs> filter() const { return std::nullopt; }
  virtual std::vector<ParamSpec> buffers() const { return {}; }  // per-worker statistics: "running_mean"
  // What a worker carries from one call to the next, 0 at the start: "h". Unlike statistics, state is never averaged.
  virtual std::vector<ParamSpec> state(std::span<const Shape>) const { return {}; }

  // Says what must live until backward; the executor reuses all other memory.
  virtual bool keeps_input() const { return false; }
  virtual bool keeps_output() const { return false; }
  // Bytes of the memory that forward fills for backward (`saved` in both arguments), for inputs of these shapes and
  // activations of this type. Throws UserError where the backend cannot train the layer in that type.
  virtual size_t saved_bytes(Backend&, std::span<const Shape>, DType) const { return 0; }
  // True: dx[input] may share the memory of dy, where backward then leaves the gradient.
  virtual bool gradient_in_place(int) const { return false; }
  // Whether backward adds dx to the other gradients of its input itself (BackwardArgs::add_to).
  virtual bool adds_gradient() const { return false; }

  virtual void forward(const ForwardArgs&) const = 0;
  virtual void backward(const BackwardArgs&) const = 0;
};

}  // namespace dgc
