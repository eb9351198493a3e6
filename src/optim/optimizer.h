#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "kernels/backend.h"
#include "optim/step_record.h"
#include "tensor/params.h"

namespace dgc {

// Where an optimizer lives: one per rank. All of it must outlive the optimizer.
struct OptimizerContext {
  Backend& backend;
  Communicator& communicator;
  const ParamLayout& layout;
  int local_workers = 1;  // the same on every rank
};

struct StepArgs {
  std::span<float* const> gradients;  // what combine() returned; scratch afterwards
  const Arena& weights;               // shared by the rank's workers
  StepRecord& record;                 // begun; judged before step()
};

// What an optimizer that works beside the backward pass measures, from its first step on, on this rank.
struct ExchangeTime {
  int64_t steps = 0;
  double seconds = 0;  // of compression and exchange
  double hidden = 0;   // of them, while gradients were being computed
};

// As if every worker had a rank of its own, whether or not it has.
struct StepBytes {
  int64_t sent = 0;   // by each worker in a step: its whole message and its part of the dense tensors
  int64_t dense = 0;  // what a dense fp32 exchange sends: 4 bytes per parameter
  Transport transport = Transport::dense;
  bool split = false;    // sparse, but split and reduced
  int64_t in_group = 0;  // what each worker adds to its group's sum, besides; 0: no groups
};

// Memory that a checkpoint must keep.
struct NamedState {
  std::string name;  // "u", "v", "momentum"
  int worker = -1;   // local worker, or -1: the rank's, and the same bits on every rank; of a group: its first here
  const Arena* arena = nullptr;
};

// Turns the workers' gradients into one step of the weights, bit-identical on every rank.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Makes ready for the next step, which follows, at this sparsity (sgd ignores it). Returns a number that changes with
  // what the step queues: the key under which a backend may record it.
  virtual uint64_t prepare(double sparsity) = 0;

  // What may be done before all gradients are there. A step that calls begin() with what step() will get, and ready()
  // for every stretch of parameters whose gradients a local worker has, the last ones first, has to settle() before it
  // makes any other collective. None of these changes anything for good.
  virtual void begin(const StepArgs&) {}
  virtual void ready(int /*local_worker*/, int /*first_param*/) {}  // those from first_param on are complete
  virtual void settle() {}  // returns when all that has been started is done; throws what went wrong there
  virtual std::optional<ExchangeTime> exchange_time() const { return std::nullopt; }

  // Collective; queued. From an arena per local worker, each the mean over its own batch, those that the record is to
  // judge and step() to take: the same, unless workers form groups.
  virtual std::span<float* const> combine(std::span<float* const> gradients) { return gradients; }

  // Collective; queued. What went wrong comes with the record's report. A step that the record skips changes nothing.
  virtual void step(const StepArgs&) = 0;
  virtual StepBytes bytes() const = 0;  // of one step, as prepared

  // Collective; queued. Sends all that is still held back, once, as plain SGD; before the final evaluation. Gradients
  // are not looked at. An optimizer that holds nothing back does nothing.
  virtual void flush(const StepArgs&) {}

  virtual std::vector<NamedState> state() const = 0;  // after a step, until the next prepare()
};

struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  std::optional<double> clip_norm{};  // of the mean gradient over all workers, over all parameters
  bool half = false;                  // make_sgd: gradients travel in fp16, what rounding takes away is held back
  bool operator==(const SgdOptions&) const = default;
};

// Dense momentum SGD on the mean of all workers' gradients, PyTorch's formulas (kernels/backend.h, SgdArgs).
std::unique_ptr<Optimizer> make_sgd(const OptimizerContext&, const SgdOptions&);

}  // namespace dgc
