#include "tools/evaluate.h"

#include "run/checkpoint.h"
#include "run/run_directory.h"
#include "run/vocabulary_file.h"
#include "tasks/datasets.h"
#include "tensor/errors.h"
#include "tools/loaded_model.h"
#include "train/evaluator.h"
#include "train/ranks.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

// A checkpoint's network and what it needs to be measured.
class Measurer {
 public:
  Measurer(const Config& config, const EvaluateOptions& options, const Dataset& test, const Checkpoint& checkpoint)
      : config_(config), options_(options), model_(config, checkpoint, test.sample()) {}

  EvalSums run(const Dataset& set, const std::function<void(ConstView)>& on_output = {}) {
    const Network& net = model_.network;
    require_classes(config_, net.loss().logits_shape(net.shape(net.output()))[1], set);
    Evaluator evaluator(model_.network, *model_.backend, set, config_.training.eval_batch,
                        static_cast<int>(config_.data.threads));
    const Buffer activations(model_.backend->device(), evaluator.activation_bytes());
    evaluator.attach(activations.data());
    if (is_speech(config_)) evaluator.decode(options_.decoding, options_.told);
    return evaluator.run(model_.weights, model_.statistics, on_output);
  }

  EvalSums run_for_logits(const Dataset& set, const std::filesystem::path& file) {
    std::vector<float> logits;
    const EvalSums sums = run(set, [&](ConstView batch) {
      const size_t begin = logits.size();
      logits.resize(begin + static_cast<size_t>(batch.numel()));
      model_.backend->device()->copy_out(logits.data() + begin, batch.data,
                                         static_cast<size_t>(batch.numel()) * sizeof(float));
    });
    const Shape shape{set.size(), static_cast<int64_t>(logits.size()) / set.size()};
    write_safetensors(file, {{.name = "logits", .view = {logits.data(), shape}}}, {}, *make_cpu_device());
    return sums;
  }

  const Arena& weights() const { return model_.weights; }

 private:
  const Config& config_;
  const EvaluateOptions& options_;
  LoadedModel model_;
};

}  // namespace

Evaluation evaluate_run(const std::filesystem::path& run, const EvaluateOptions& options) {
  const Config config = run_config(run, options.overrides);
  const std::optional<Checkpoint> checkpoint = newest_checkpoint(run);
  if (!checkpoint) throw_user_error("{} has no checkpoint to evaluate", run.string());
  if (is_text(config) && !options.logits.empty()) {
    throw_user_error("--logits is for images: of a text they would be as many as words times the vocabulary");
  }
  if (is_speech(config) && !options.logits.empty()) {
    throw_user_error("--logits is for images: utterances have as many logits as they have frames");
  }
  if (!is_speech(config) && (options.decoding.beam != 1 || !options.decoding.words.empty() || options.told)) {
    throw_user_error("--beam, --lm and --show are for speech, and {} is not the run of a speech model", run.string());
  }
  const Datasets sets = make_test_datasets(config, run);
  tell_remarks(sets);
  if (sets.vocabulary) require_same_vocabulary(*checkpoint, *sets.vocabulary);

  Measurer measurer(config, options, *sets.test, *checkpoint);
  const EvalSums sums =
      options.logits.empty() ? measurer.run(*sets.test) : measurer.run_for_logits(*sets.test, options.logits);
  const auto n = static_cast<double>(sets.test->size());
  Evaluation evaluation{.checkpoint = checkpoint->path(),
                        .metrics = {.step = checkpoint->manifest().step,
                                    .epoch = static_cast<double>(checkpoint->manifest().epoch),
                                    .test_loss = sums.loss / n,
                                    .test_accuracy = sums.top1 / n,
                                    .test_top5 = sums.top5 / n},
                        .weights_xxh64 = weights_xxh64(measurer.weights())};
  if (is_speech(config)) {
    evaluation.metrics.test_accuracy = evaluation.metrics.test_top5 = kNoNumber;
    set_speech(evaluation.metrics, sums);
  }
  if (sets.valid) {
    evaluation.metrics.valid_loss = measurer.run(*sets.valid).loss / static_cast<double>(sets.valid->size());
  }
  return evaluation;
}

}  // namespace dgc
