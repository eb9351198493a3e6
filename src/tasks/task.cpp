#include "tasks/task.h"

#include <spdlog/spdlog.h>

#include <set>

#include "config/data_types.h"
#include "models/executors.h"
#include "tensor/errors.h"

namespace dgc {

Counts Scorer::count(Backend&, const Batch&, ConstView, const LossStats& stats) {
  return {stats.loss, stats.counts[0], stats.counts[1]};
}

const Task& task_of(const Config& config) {
  switch (data_type(config.data).kind) {
    case DataKind::images:
      return image_task(config);
    case DataKind::text:
      return text_task();
    case DataKind::speech:
      return speech_task(config);
  }
  throw InternalError("a kind of data that has no task");
}

std::string Task::batch_text(const Config& config) const {
  return fmt::format("batch {}", config.training.batch_per_worker);
}

void Task::require_classes(const Config&, int64_t classes, const Dataset& data) const {
  if (classes >= data.classes()) return;
  throw_user_error(
      "the model has {0} classes but the data has {1}; set model.classes, or the out of the last of model.layers, to "
      "{1}",
      classes, data.classes());
}

std::string Task::after_redistribution(int64_t repeated) const {
  return fmt::format("and {} samples come a second time", repeated);
}

int64_t global_batch(const Config& config) { return config.workers() * task_of(config).samples_per_step(config); }

Sampling sampling_of(const Config& config, const Dataset& train, int64_t workers) {
  return {train.size(), workers * config.training.accumulate, task_of(config).rows_per_micro_batch(config),
          config.seed};
}

Sampling sampling_of(const Config& config, const Dataset& train) {
  return sampling_of(config, train, config.workers());
}

WorkerBatches worker_batches(const Config& config, const Dataset& train, int64_t first_worker, int64_t start_step) {
  const int64_t each = config.training.accumulate;
  return {.sampling = sampling_of(config, train),
          .first_worker = static_cast<int>(first_worker * each),
          .local_workers = static_cast<int>(config.workers_per_rank * each),
          .start_step = start_step};
}

std::vector<int64_t> batch_rows(const Config& config, const Dataset& train) {
  if (train.most_labels() > 0) return padded_lengths(train.rows());
  return {task_of(config).rows_per_micro_batch(config)};
}

void require_alike(const Dataset& train, const Dataset& other, const char* name, const char* key) {
  const std::vector<Trait> wanted = train.traits(), there = other.traits();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (there.at(i) == wanted[i]) continue;
    throw_user_error("{}: the {} is {} in the training set, but {} in the {} set, and one model reads both", key,
                     wanted[i].name, wanted[i].value, there[i].value, name);
  }
  const std::vector<std::string> ours = train.class_names(), theirs = other.class_names();
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (theirs[i] == ours[i]) continue;
    throw_user_error("{}: class {} is \"{}\" in the training set, but \"{}\" in the {} set, and one model reads both",
                     key, i, ours[i], theirs[i], name);
  }
}

Datasets alike(std::unique_ptr<Dataset> train, std::unique_ptr<Dataset> test) {
  require_alike(*train, *test, "test", "data.path");
  Datasets sets;
  sets.train = std::move(train);
  sets.test = std::move(test);
  return sets;
}

std::vector<std::pair<const Dataset*, const char*>> named_sets(const Datasets& sets) {
  std::vector<std::pair<const Dataset*, const char*>> all = {
      {sets.train.get(), "training"}, {sets.valid.get(), "validation"}, {sets.test.get(), "test"}};
  std::erase_if(all, [](const auto& set) { return set.first == nullptr; });
  return all;
}

void tell_remarks(const Datasets& sets) {
  std::set<std::string> told;
  for (const auto& [set, name] : named_sets(sets)) {
    for (const std::string& remark : set->remarks()) {
      if (told.insert(remark).second) spdlog::warn("the {} set: {}", name, remark);
    }
  }
}

}  // namespace dgc
