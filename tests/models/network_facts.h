#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models/network.h"

namespace dgc {

inline std::vector<std::string> node_names(const Network& net) {
  std::vector<std::string> names;
  for (const Network::Node& node : net.nodes()) names.push_back(node.name);
  return names;
}

// How many calls announce gradients that are complete: one for each layer with parameters, and one for the loss's own.
inline int layers_with_parameters(const Network& net) {
  const auto layers = std::ranges::count_if(net.nodes(), [](const Network::Node& node) { return node.params > 0; });
  return static_cast<int>(layers) + (net.own_loss_params() > 0 ? 1 : 0);
}

}  // namespace dgc
