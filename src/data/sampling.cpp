#include "data/sampling.h"

#include <algorithm>
#include <numeric>

#include "tensor/errors.h"
#include "tensor/rng.h"

namespace dgc {

int64_t Sampling::steps_per_epoch() const {
  DGC_CHECK(samples >= 0 && workers > 0 && batch_per_worker > 0, "sampling sizes");
  const int64_t steps = samples / global_batch();
  if (steps == 0) {
    throw_user_error(
        "training.batch_per_worker: one step of {} batches with {} examples each needs {} examples, but the training "
        "set has only {}",
        workers, batch_per_worker, global_batch(), samples);
  }
  return steps;
}

Sampler::Sampler(const Sampling& sampling)
    : Sampler(sampling, [samples = sampling.samples, seed = sampling.seed](int64_t epoch) {
        return permutation(samples, seed, rng_stream("shuffle", static_cast<uint64_t>(epoch)));
      }) {}

Sampler::Sampler(const Sampling& sampling, Ordering ordering)
    : sampling_(sampling), ordering_(std::move(ordering)), steps_per_epoch_(sampling.steps_per_epoch()) {}

Sampler::Order Sampler::order(int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  const size_t place = static_cast<size_t>(epoch % 2);
  if (epochs_[place] != epoch) {
    orders_[place] = std::make_shared<const std::vector<int32_t>>(ordering_(epoch));
    epochs_[place] = epoch;
  }
  return orders_[place];
}

void Sampler::indices(int64_t global_step, int64_t worker, std::vector<int32_t>& out) const {
  DGC_CHECK(global_step >= 0 && worker >= 0 && worker < sampling_.workers, "step or worker");
  const Order samples = order(epoch(global_step));
  const int64_t step = global_step % steps_per_epoch_;
  const auto first = samples->begin() + step * sampling_.global_batch() + worker * sampling_.batch_per_worker;
  out.assign(first, first + sampling_.batch_per_worker);
}

WorkerBatches::Place WorkerBatches::place(int64_t number) const {
  DGC_CHECK(first_worker >= 0 && local_workers >= 1 && first_worker + local_workers <= sampling.workers,
            "a rank's workers are among all workers");
  return {start_step + number / local_workers, first_worker + static_cast<int>(number % local_workers)};
}

BatchPlans training_plans(const WorkerBatches& batches, std::shared_ptr<const Sampler> sampler) {
  return {kEndless, [batches, sampler = std::move(sampler)](int64_t number) {
            const auto [step, worker] = batches.place(number);
            BatchPlan plan{
                .step = step, .epoch = sampler->epoch(step), .worker = worker, .augment_seed = batches.sampling.seed};
            sampler->indices(step, worker, plan.samples);
            return plan;
          }};
}

BatchPlans evaluation_plans(int64_t samples, const EvaluationBatches& batches) {
  DGC_CHECK(batches.rows >= 1, "batch size");
  DGC_CHECK(batches.first >= 0 && batches.every >= 1, "a share of the batches");
  const int64_t all = (samples + batches.rows - 1) / batches.rows;
  const int64_t count = std::max<int64_t>(all - batches.first + batches.every - 1, 0) / batches.every;
  return {count, [samples, batches](int64_t number) {
            BatchPlan plan{.step = batches.first + number * batches.every};
            const int64_t first = plan.step * batches.rows;
            plan.samples.resize(static_cast<size_t>(std::min(batches.rows, samples - first)));
            std::iota(plan.samples.begin(), plan.samples.end(), static_cast<int32_t>(first));
            return plan;
          }};
}

}  // namespace dgc
