#include "train/steps/synchronous_steps.h"

#include "tasks/make.h"

namespace dgc {

SynchronousSteps::SynchronousSteps(const StepContext& context) : StepComputation(context) {
  for (const RankMemory::Worker& w : context.memory.workers) gradients_.push_back(w.gradient.data());
}

int64_t SynchronousSteps::queue(const NextStep& next) {
  RankMemory& memory = context_.memory;
  const uint64_t number = memory.optimizer->prepare(next.sparsity);
  const bool records_passes = exchanges_are_recordable() && passes_are_alike();
  memory.record.begin(next.input);
  if (memory.optimizer->overlaps() || records_passes) {
    RecordKey key = {kStep, number};
    for (int local = 0; local < local_workers(); ++local) add_lengths(local, key);
    queue_exchange(key, [this] {
      compute(Passes::as_they_are);
      exchange_gradients();
    });
  } else {
    compute(Passes::recorded);
    queue_exchange({kExchange, number}, [this] { exchange_gradients(); });
  }
  memory.record.finish();
  return 1;
}

void SynchronousSteps::compute(Passes passes) {
  RankMemory& memory = context_.memory;
  memory.optimizer->begin({.gradients = gradients_, .weights = memory.weights, .record = memory.record});
  for (int local = 0; local < local_workers(); ++local) begin_with_kept(local);
  const auto pass_of = [&](int local) {
    Pass pass{.weights = memory.weights, .control = memory.record.control(), .loss = &memory.record.local(local)->loss};
    if (memory.optimizer->overlaps()) {
      pass.ready = [&memory, local](int first_param) { memory.optimizer->ready(local, first_param); };
    }
    return pass;
  };
  if (memory.places.size() > 1) return run_workers(passes, pass_of);
  // All workers read the same weights, one after another.
  find_filters(context_.network, memory.weights, nullptr, filters_);
  context_.backend.with_filters(filters_, activation_type(context_.config, context_.backend),
                                [&] { run_workers(passes, pass_of); });
}

void SynchronousSteps::exchange_gradients() { exchange(context_.memory.optimizer->combine(gradients_)); }

}  // namespace dgc
