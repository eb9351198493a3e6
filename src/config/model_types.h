#pragma once

#include <string>
#include <vector>

#include "config/check.h"
#include "models/network.h"

namespace dgc {

using ModelSection = Section<Config, ModelOptions Config::*>;

// What model.type can name.
struct ModelType {
  std::string name;
  DataKind reads;
  void (*add_keys)(const ModelSection&);     // those that exist for this type; called with its section
  void (*complete)(Config&, const Origin&);  // decides what its keys leave open, and refuses what contradicts itself
  int64_t (*classes)(const ModelOptions&);   // that its keys say; null: they do not
  Network (*make)(const ModelOptions&, const Shape& sample);
};
const std::vector<ModelType>& model_types();
const ModelType& model_type(const ModelOptions&);

// For a Dataset::sample(). Throws UserError where the layers do not fit one another or what they read, or
// model.vocabulary is not known.
Network make_network(const ModelOptions&, const Shape& sample);

}  // namespace dgc
