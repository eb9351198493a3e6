#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "kernels/backend.h"
#include "optim/carried_step.h"
#include "optim/step_record.h"
#include "tensor/params.h"

namespace dgc {

// Where an optimizer runs. Each rank has one optimizer, which all members must outlive.
struct OptimizerContext {
  Backend& backend;
  Communicator& communicator;
  const ParamLayout& layout;
  int local_workers = 1;  // the same on every rank
};

struct StepArgs {
  std::span<float* const> gradients;  // what combine() returned; step() may overwrite them
  const Arena& weights;               // shared by the rank's workers
  StepRecord& record;                 // has begun, and is judged before step()
};

// The time of an exchange that overlaps the backward pass: the sum of all steps on this rank.
struct ExchangeTime {
  int64_t steps = 0;
  double seconds = 0;  // time of compression and exchange
  double hidden = 0;   // the part of `seconds` in which gradients were still being computed

  double ms_per_step() const { return 1000 * seconds / static_cast<double>(steps); }  // NaN without a step
  double hidden_share() const { return hidden / seconds; }                            // 0 ... 1; NaN likewise
};

// What each worker sends in a step, counted as if every worker had a rank of its own.
struct StepBytes {
  int64_t sent = 0;   // a worker's whole message and its part of the dense tensors
  int64_t dense = 0;  // what a dense fp32 exchange sends: 4 bytes per parameter
  Travel travel = Travel::dense;
  int64_t in_group = 0;  // what each worker sends for the sum of its group, not counted in `sent`; 0: no groups
};

// Memory that a checkpoint must keep.
struct NamedState {
  std::string name;  // "u", "v", "residual", "momentum"
  int worker = -1;   // local worker, for a group its first one; -1: state of the rank, the same bits on every rank
  const Arena* arena = nullptr;
};

// Turns the workers' gradients into one step of the weights, bit-identical on every rank.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Prepares the step that follows, at this sparsity, which SGD ignores. Returns a number that changes if the step
  // queues other work than the last one: the key under which a backend may record the step.
  virtual uint64_t prepare(double sparsity) = 0;

  // Work that overlaps the backward pass. begin() takes the arguments that step() will get. ready() is called for every
  // stretch of parameters whose gradients a local worker has, the last parameters first. A step that has called begin()
  // must call settle() before any other collective. None of the three changes anything for good.
  virtual void begin(const StepArgs&) {}
  virtual void ready(int /*local_worker*/, int /*first_param*/) {}  // gradients from first_param on are complete
  virtual void settle() {}  // waits for all work that has been started; throws what that work threw
  virtual bool overlaps() const { return false; }  // whether a step as prepared queues such work
  virtual std::optional<ExchangeTime> exchange_time() const { return std::nullopt; }

  // Collective; queued. gradients: an arena per local worker, each with the mean over the worker's own batch. Returns
  // the gradients that the record judges and step() takes: the same ones, unless workers form groups.
  virtual std::span<float* const> combine(std::span<float* const> gradients) { return gradients; }

  // Collective; queued. StepRecord::take() reports what went wrong. A step that the record skips changes nothing.
  virtual void step(const StepArgs&) = 0;
  // The same step in two halves; null: this optimizer, as it was made, has none.
  virtual CarriedStep* carried() { return nullptr; }
  virtual StepBytes bytes() const = 0;  // for a step as prepared

  // Collective; queued. Sends everything that workers still hold back, once, before the final evaluation, and applies
  // it as plain SGD. Ignores the gradients. The default does nothing.
  virtual void flush(const StepArgs&) {}
  virtual void prepare_flush() {}  // allocates what flush() needs, which calls it by itself

  // Valid between steps: from the construction or the end of a step until the next prepare(), which may swap arenas.
  // Who restores a checkpoint writes to these arenas.
  virtual std::vector<NamedState> state() const = 0;
};

struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  std::optional<double> clip_norm{};  // limit for the norm of the mean gradient over all workers, over all parameters
  bool operator==(const SgdOptions&) const = default;
};

// How the gradients of dense SGD travel. With fp16 each worker holds back what rounding takes away.
enum class DenseValues { fp32, fp16 };

// Dense momentum SGD on the mean of all workers' gradients, with PyTorch's formulas (SgdArgs in kernels/op_args.h).
std::unique_ptr<Optimizer> make_sgd(const OptimizerContext&, const SgdOptions&, DenseValues = DenseValues::fp32);

}  // namespace dgc
