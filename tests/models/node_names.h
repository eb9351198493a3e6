#pragma once

#include <string>
#include <vector>

#include "models/network.h"

namespace dgc {

inline std::vector<std::string> node_names(const Network& net) {
  std::vector<std::string> names;
  for (const Network::Node& node : net.nodes()) names.push_back(node.name);
  return names;
}

}  // namespace dgc
