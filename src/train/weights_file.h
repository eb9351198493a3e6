#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/network.h"
#include "run/checkpoint.h"
#include "tensor/params.h"

namespace dgc {

// The file of a checkpoint that everybody can open: the parameters and the BatchNorm statistics averaged over all
// workers, with the names and layouts of PyTorch's state_dict, which has what is tied under each of its names.
struct SavedWeights {
  const Arena& weights;
  const Arena& statistics;
  int64_t batches = 0;
  std::span<const Network::Tie> ties = {};
};
ManifestFile save_weights(const CheckpointStore&, const SavedWeights&);
void load_weights(const Checkpoint&, const Arena& weights, const Arena& statistics);

// Every parameter of an arena under its name, and back. Loading throws UserError naming file and tensor.
void append_tensors(std::vector<TensorSource>& to, const Arena& arena, const std::string& prefix = "");
void load_tensors(const SafetensorsFile&, const Arena& arena, const std::string& prefix = "");

// Of each parameter, and of all in order: two models are equal exactly when these are.
std::vector<uint64_t> tensor_hashes(const Arena& weights);
std::string weights_xxh64(const Arena& weights);

bool all_finite(const Arena& weights);

}  // namespace dgc
