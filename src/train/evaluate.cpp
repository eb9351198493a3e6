#include "train/evaluate.h"

#include "config/config.h"
#include "tensor/errors.h"
#include "train/checkpoint.h"
#include "train/evaluator.h"
#include "train/make.h"
#include "train/run_directory.h"
#include "train/weights_file.h"

namespace dgc {

Evaluation evaluate_run(const std::filesystem::path& run, const EvaluateOptions& options) {
  const Config config = run_config(run, options.overrides);
  const std::optional<Checkpoint> checkpoint = newest_checkpoint(run);
  if (!checkpoint) throw_user_error("{} has no checkpoint to evaluate", run.string());

  const auto dataset = make_dataset(config, Split::test);
  const auto backend = make_backend(config.device, static_cast<int>(config.threads));
  const ImageShape image = dataset->shape();
  const Network network = make_network(config.model, {image.height, image.width, image.channels});
  const ParamLayout params(network.params()), buffers(network.buffers());
  const Arena weights(backend->device(), params), statistics(backend->device(), buffers);
  load_weights(*checkpoint, weights, statistics);

  Evaluator evaluator(network, *backend, *dataset, config.training.eval_batch, static_cast<int>(config.data.threads));
  const Buffer activations(backend->device(), evaluator.activation_bytes());
  evaluator.attach(activations.data());
  std::vector<float> logits;
  const EvalSums sums = evaluator.run(weights, statistics, [&](ConstView batch) {
    const size_t begin = logits.size();
    logits.resize(begin + static_cast<size_t>(batch.numel()));
    backend->device()->copy_out(logits.data() + begin, batch.data, static_cast<size_t>(batch.numel()) * sizeof(float));
  });
  const int64_t samples = dataset->size();
  if (!options.logits.empty()) {
    const auto host = make_cpu_device();
    const Shape shape{samples, static_cast<int64_t>(logits.size()) / samples};
    write_safetensors(options.logits, {{.name = "logits", .view = {logits.data(), shape}}}, {}, *host);
  }
  const auto n = static_cast<double>(samples);
  return {.checkpoint = checkpoint->path(),
          .metrics = {.step = checkpoint->manifest().step,
                      .epoch = static_cast<double>(checkpoint->manifest().epoch),
                      .test_loss = sums.loss / n,
                      .test_accuracy = sums.top1 / n,
                      .test_top5 = sums.top5 / n},
          .weights_xxh64 = weights_xxh64(weights)};
}

}  // namespace dgc
