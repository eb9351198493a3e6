#include "train/synchronous_steps.h"

#include <vector>

namespace dgc {

int64_t SynchronousSteps::queue(const NextStep& next) {
  RankMemory& memory = context_.memory;
  const uint64_t key = memory.optimizer->prepare(next.sparsity);
  memory.record.begin(next.input);
  queue_recorded(passes_are_alike() && context_.communicator.recordable(), key, [this] { compute_and_exchange(); });
  memory.record.finish();
  return 1;
}

void SynchronousSteps::compute_and_exchange() {
  RankMemory& memory = context_.memory;
  std::vector<float*> own;
  for (const RankMemory::Worker& w : memory.workers) own.push_back(w.gradient.data());
  memory.optimizer->begin({.gradients = own, .weights = memory.weights, .record = memory.record});
  for (int local = 0; local < local_workers(); ++local) begin_with_kept(local);
  run_workers([&](int local) {
    return Pass{.weights = memory.weights,
                .control = memory.record.control(),
                .loss = &memory.record.local(local)->loss,
                .ready = [&memory, local](int first_param) { memory.optimizer->ready(local, first_param); }};
  });
  exchange(memory.optimizer->combine(own));
}

}  // namespace dgc
