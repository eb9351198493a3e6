#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/network.h"
#include "run/checkpoint.h"
#include "tensor/params.h"

namespace dgc {

// The file of a checkpoint that PyTorch programs can open: the parameters and the BatchNorm statistics averaged over
// all workers, with the names and layouts of PyTorch's state_dict, where a tied parameter is there under each of its
// names.
struct SavedWeights {
  const Arena& weights;
  const Arena& statistics;
  int64_t step = 0;  // of the checkpoint; also PyTorch's num_batches_tracked
  std::span<const Network::Tie> ties = {};
};
std::vector<TensorSource> weight_tensors(const SavedWeights&);
ManifestFile save_weights(const CheckpointStore&, const SavedWeights&);
// Throws UserError that names file and tensor unless the file holds these parameters and statistics, and no others.
void load_weights(const Checkpoint&, const Arena& weights, const Arena& statistics, std::span<const Network::Tie> ties);

// Throws UserError that begins with `where` and names the first tensor of a file that the model has under no name.
// PyTorch's counts of batches are no tensors of a model.
void require_no_others(const SafetensorsFile&, const ParamLayout& parameters, const ParamLayout& statistics,
                       std::span<const Network::Tie> ties, const std::string& where);

// Writes every parameter of an arena under its name, and reads it back. load_tensors() throws UserError naming file and
// tensor.
void append_tensors(std::vector<TensorSource>& to, const Arena& arena, const std::string& prefix = "");
void load_tensors(const SafetensorsFile&, const Arena& arena, const std::string& prefix = "");

// Hashes of each parameter, and of all parameters in order: two models count as equal exactly when their hashes are
// equal.
std::vector<uint64_t> tensor_hashes(const Arena& weights);
std::string weights_xxh64(const Arena& weights);

bool all_finite(const Arena& weights);

}  // namespace dgc
