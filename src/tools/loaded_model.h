#pragma once

#include <memory>

#include "config/model_types.h"
#include "config/options.h"
#include "kernels/backend.h"
#include "run/checkpoint.h"
#include "tasks/make.h"
#include "train/weights_file.h"

namespace dgc {

// A run's network with a checkpoint's weights, on the config's device. sample: the shape of a row of data. Throws
// UserError as make_network() and load_weights() do.
struct LoadedModel {
  LoadedModel(const Config& config, const Checkpoint& checkpoint, const Shape& sample)
      : backend(make_backend(config.device, static_cast<int>(config.threads))),
        network(make_network(config.model, sample)),
        params(network.params()),
        buffers(network.buffers()),
        weights(backend->device(), params),
        statistics(backend->device(), buffers) {
    load_weights(checkpoint, weights, statistics);
  }

  std::unique_ptr<Backend> backend;
  Network network;
  ParamLayout params, buffers;
  Arena weights, statistics;
};

}  // namespace dgc
