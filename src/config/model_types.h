#pragma once

#include <string>
#include <vector>

#include "config/check.h"
#include "models/network.h"

namespace dgc {

// A type of model that model.type can name.
struct ModelType {
  std::string name;
  DataKind reads;
  void (*add_keys)(const Section<ModelOptions>&);  // adds the type's own keys; called with the type's section
  // Decides what the type's keys leave open. Throws UserError where they contradict others.
  void (*complete)(Config&, const Origin&);
  int64_t (*classes)(const ModelOptions&);  // what the type's keys say; null: they do not say it
  Network (*make)(const ModelOptions&, const Shape& sample);
};
const std::vector<ModelType>& model_types();
const ModelType& model_type(const ModelOptions&);

// sample: as Dataset::sample() returns it. Throws UserError if the layers do not fit one another or the sample, if
// model.vocabulary is not known, or if model.freeze names no parameter or all of them.
Network make_network(const ModelOptions&, const Shape& sample);

}  // namespace dgc
