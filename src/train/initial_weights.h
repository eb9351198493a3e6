#pragma once

#include <string>

#include "config/options.h"
#include "models/network.h"
#include "run/safetensors.h"
#include "tensor/params.h"

namespace dgc {

// The file of model.init_from: the parameters and BatchNorm statistics that a run starts from, by the names and in the
// shapes of the network. The last layer with parameters is the head: where the file has it for another number of
// classes, or not at all, the run starts with a new one.
class InitialWeights {
 public:
  // Throws UserError that names the file and the first tensor that is missing, of another shape or type, not finite, or
  // unknown to the network.
  InitialWeights(const std::string& file, const Network&);

  const std::string& xxh64() const { return xxh64_; }  // of the whole file
  // A sentence about a new head; "" where the file has all tensors.
  const std::string& remark() const { return remark_; }
  // Copies the tensors of the file to arenas of the network's parameters and statistics, and leaves a new head alone.
  void load(const Arena& weights, const Arena& statistics) const;

 private:
  InitialWeights(const std::string& file, std::string bytes, const Network&);

  bool in_head(int param) const { return param >= first_of_head_ && param < end_of_head_; }

  std::string xxh64_;
  SafetensorsFile file_;
  std::string remark_;
  int first_of_head_ = 0, end_of_head_ = 0;  // parameters of a new head; none where the file has it
};

// Throws UserError where a training by this config cannot begin with the file of its model.init_from.
void require_initial_weights(const Config& as_written);

}  // namespace dgc
