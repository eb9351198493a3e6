#include "tools/evaluate.h"

#include "run/checkpoint.h"
#include "run/file_io.h"
#include "run/run_directory.h"
#include "run/run_state.h"
#include "run/vocabulary_file.h"
#include "tensor/errors.h"
#include "tools/loaded_model.h"
#include "train/evaluator.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

// A checkpoint's network and what it needs to be measured.
class Measurer {
 public:
  Measurer(const Config& config, const EvaluateOptions& options, const Dataset& test, FoundCheckpoint& checkpoint)
      : config_(config), options_(options), model_(config, checkpoint, test.sample()) {}

  Measures run(const Dataset& set, Split split, const Evaluator::OnOutput& on_output = {}) {
    Network network = make_network(config_.model, set.sample());
    const Task& task = task_of(config_);
    task.require_classes(config_, network.classes(), set);
    Evaluator::Scored scored{set, task.make_scorer(set, network, split, options_.scoring)};
    Evaluator evaluator(std::move(network), *model_.backend, std::move(scored), config_.training.eval_batch,
                        static_cast<int>(config_.data.threads));
    Executors& executors = evaluator.memory().executors;
    const Buffer activations(model_.backend->device(), executors.activation_bytes(), MemoryUse::activations);
    executors.attach(activations.data());
    return evaluator.run(model_.weights, model_.statistics, on_output);
  }

  Measures run_for_logits(const Dataset& set, const std::filesystem::path& file) {
    std::vector<float> logits;
    std::vector<int32_t> labels;
    Measures measures = run(set, Split::test, [&](const Batch& batch, ConstView output) {
      const size_t begin = logits.size();
      logits.resize(begin + static_cast<size_t>(output.numel()));
      model_.backend->device()->copy_out(logits.data() + begin, output.data, float_bytes(output.numel()));
      labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    });
    const Shape shape{set.size(), static_cast<int64_t>(logits.size()) / set.size()};
    write_safetensors(file,
                      {{.name = "logits", .view = {logits.data(), shape}},
                       {.name = "labels", .view = {labels.data(), {set.size()}, DType::i32}}},
                      {}, *make_cpu_device());
    return measures;
  }

  const Arena& weights() const { return model_.weights; }

 private:
  const Config& config_;
  const EvaluateOptions& options_;
  LoadedModel model_;
};

// Counts epochs as the rows of metrics.jsonl do; whole ones where the checkpoint does not say how many steps one has.
double epochs_of(const Checkpoint& checkpoint) {
  const RunState state = read_run_state(checkpoint);
  if (state.steps_per_epoch < 1) return static_cast<double>(checkpoint.manifest().epoch);
  return static_cast<double>(state.position) / static_cast<double>(state.steps_per_epoch);
}

}  // namespace

Evaluation evaluate_run(const std::filesystem::path& run, const EvaluateOptions& options) {
  const Config config = config_of_model(run, options.overrides);
  FoundCheckpoint checkpoint([&] { return options.best ? best_model(run) : newest_model(run); });
  const Task& task = task_of(config);
  if (!options.logits.empty()) {
    task.require_logits();
    require_writable(options.logits);
  }
  if (options.scoring.asks_for_texts() && !task.has_texts()) {
    throw_user_error("--beam, --lm and --show are for speech, and {} is not the run of a speech model", run.string());
  }
  const Datasets sets = task.open_to_evaluate(config, run);
  tell_remarks(sets);
  if (sets.vocabulary) require_same_vocabulary(*checkpoint, *sets.vocabulary);

  Measurer measurer(config, options, *sets.test, checkpoint);
  Evaluation evaluation{
      .checkpoint = checkpoint->path(),
      .metrics = {.step = checkpoint->manifest().step,
                  .epoch = epochs_of(*checkpoint),
                  .measures = options.logits.empty() ? measurer.run(*sets.test, Split::test)
                                                     : measurer.run_for_logits(*sets.test, options.logits)},
      .weights_xxh64 = weights_xxh64(measurer.weights())};
  if (sets.valid) evaluation.metrics.measures.set(measurer.run(*sets.valid, Split::valid));
  return evaluation;
}

}  // namespace dgc
