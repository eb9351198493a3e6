#include "train/steps/local_steps.h"

namespace dgc {

LocalSteps::LocalSteps(const StepContext& context)
    : StepComputation(context),
      options_(context.config.exchange),
      loss_layout_(std::vector<ParamSpec>{{.name = "stats", .shape = {sizeof(LossStats) / sizeof(float)}, .init = {}}}),
      control_(context.backend.device(), sizeof(StepControl)) {
  const auto& device = context.backend.device();
  const StepControl control;
  device->copy_in(control_.data(), &control, sizeof(control));
  for (int local = 0; local < local_workers(); ++local) {
    workers_.push_back(
        {LocalWeights(context.backend, context.memory.params, context.memory.trained, context.config.optimizer.dgc.sgd),
         Arena(device, loss_layout_), Buffer(device, sizeof(LossStats))});
  }
}

int64_t LocalSteps::queue(const NextStep& next) {
  context_.communicator.check();  // a collective, which would notice that another rank is gone, may be many steps away
  if (taken_ == 0) begin_round();
  context_.backend.begin_step(next.input, control(), {});
  if (passes_are_alike()) {
    queue_alone({kOwnSteps}, [this] { take_steps(Passes::as_they_are); });
  } else {
    take_steps(Passes::recorded);
  }
  ++taken_;
  if (taken_ < options_.every_steps && !next.must_share) return 0;
  return end_round(next);
}

int64_t LocalSteps::end_round(const NextStep& next) {
  RankMemory& memory = context_.memory;
  StepInput input = next.input;
  input.lr = outer_rate();
  const uint64_t key = memory.optimizer->prepare(next.sparsity);
  memory.record.begin(input);
  queue_exchange({kExchange, key}, [this] { exchange_moved(); });
  memory.record.finish();
  return end_count();
}

void LocalSteps::begin_round() {
  for (int local = 0; local < local_workers(); ++local) {
    Worker& mine = workers_[static_cast<size_t>(local)];
    mine.own.begin(context_.memory.weights);
    begin_with_kept(local);
    context_.backend.device()->zero(mine.loss.data(), mine.loss.bytes());
  }
}

void LocalSteps::take_steps(Passes passes) {
  run_workers(passes, [&](int local) {
    const Worker& mine = workers_[static_cast<size_t>(local)];
    return Pass{.weights = mine.own.weights(), .control = control(), .loss = step_loss(mine)};
  });
  for (int local = 0; local < local_workers(); ++local) {
    Worker& mine = workers_[static_cast<size_t>(local)];
    const Range range(context_.backend, "apply");
    mine.own.step(worker(local).gradient.data(), control());
    context_.backend.add_loss(step_loss(mine), round_loss(mine));
  }
}

void LocalSteps::exchange_moved() {
  exchange(write_moved());
  settle_moved();
}

std::vector<float*> LocalSteps::write_moved() {
  RankMemory& memory = context_.memory;
  Device& device = *context_.backend.device();
  std::vector<float*> moved;
  for (int local = 0; local < local_workers(); ++local) {
    const Worker& mine = workers_[static_cast<size_t>(local)];
    moved.push_back(worker(local).gradient.data());
    const Range range(context_.backend, "compress");
    mine.own.write_moved(memory.weights, moved.back());
    device.copy(&memory.record.local(local)->loss, round_loss(mine), sizeof(LossStats));
  }
  return moved;
}

void LocalSteps::settle_moved() {
  Device& device = *context_.backend.device();
  for (int local = 0; local < local_workers(); ++local) {
    const Arena& gradient = worker(local).gradient;
    device.zero(gradient.data(), gradient.bytes());
    workers_[static_cast<size_t>(local)].own.settle(context_.memory.record.control(), gradient.data());
  }
}

std::vector<NamedState> LocalSteps::state() const {
  std::vector<NamedState> all;
  for (int local = 0; local < local_workers(); ++local) {
    const Worker& mine = workers_[static_cast<size_t>(local)];
    if (const Arena* momentum = mine.own.momentum()) all.push_back({"local_momentum", local, momentum});
    if (taken_ == 0) continue;  // the next round begins with what is kept anyway
    all.push_back({"local_weights", local, &mine.own.weights()});
    all.push_back({"local_statistics", local, &worker(local).next_statistics});
    for (size_t part = 0; part < worker(local).micro_batches.size(); ++part) {
      all.push_back({part_name("local_state", part), local, &worker(local).micro_batches[part].next_state});
    }
    all.push_back({"local_loss", local, &mine.loss});
  }
  return all;
}

}  // namespace dgc
