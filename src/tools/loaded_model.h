#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/model_types.h"
#include "config/options.h"
#include "kernels/backend.h"
#include "models/executor.h"
#include "run/checkpoint.h"
#include "tasks/make.h"
#include "train/steps/batch_input.h"
#include "train/weights_file.h"

namespace dgc {

// The config of a run whose model a tool uses. Throws UserError as run_config() does, and for overrides that a trained
// model cannot follow.
Config config_of_model(const std::filesystem::path& run, const std::vector<std::string>& overrides);

// The same of a run whose model reads data of that kind. Throws UserError as config_of_model() does, and for another
// kind's run, of which `otherwise` says the rest: "is not the run of a model of images".
Config config_of_kind(const std::filesystem::path& run, const std::vector<std::string>& overrides, DataKind,
                      const char* otherwise);

// The checkpoint that a tool looks at, of a run that may be going on meanwhile.
class FoundCheckpoint {
 public:
  using Find = std::function<Checkpoint()>;
  explicit FoundCheckpoint(Find find) : find_(std::move(find)), checkpoint_(find_()) {}

  const Checkpoint& operator*() const { return checkpoint_; }
  const Checkpoint* operator->() const { return &checkpoint_; }

  // load_weights(). Where the training has removed the checkpoint since it was found, another one is found in its
  // place.
  void load(const Arena& weights, const Arena& statistics, std::span<const Network::Tie> ties);

 private:
  Find find_;
  Checkpoint checkpoint_;
};

// A run's network with a checkpoint's weights, on the config's device. sample: the shape of a row of data. Throws
// UserError as make_network() and load_weights() do.
struct LoadedModel {
  LoadedModel(const Config& config, FoundCheckpoint& checkpoint, const Shape& sample)
      : backend(make_backend(config.device, static_cast<int>(config.threads))),
        network(make_network(config.model, sample)),
        params(network.params()),
        buffers(network.buffers()),
        weights(backend->device(), params),
        statistics(backend->device(), buffers) {
    checkpoint.load(weights, statistics, network.ties());
  }

  std::unique_ptr<Backend> backend;
  Network network;
  ParamLayout params, buffers;
  Arena weights, statistics;
};

// What a loaded model needs to look at one batch after another. Its state, where it has one, begins at zero and goes on
// from batch to batch.
class LoadedExecutor {
 public:
  // The model must outlive it.
  LoadedExecutor(const LoadedModel&, const BatchInput::Sizes&);

  // Returns the network's output, in device memory and valid until the next call, for a batch of as many rows as there
  // is room for.
  View run(const Batch&);
  // Runs a batch, and returns its logits [rows, classes] on the host, valid until the next call.
  std::span<const float> logits(const Batch&);

 private:
  const LoadedModel& model_;
  BatchInput input_;
  Executor executor_;
  ParamLayout state_layout_;
  Arena state_;
  Buffer activations_, device_logits_;
  std::vector<float> logits_;
};

}  // namespace dgc
