#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/keys.h"
#include "models/network.h"

namespace dgc {

// What an entry of model.layers can name.
struct LayerType {
  std::string name;
  void (*add_keys)(const Section<LayerOptions>&);  // those that exist for this type; called with its section
  // in: the last size of the layer's input, its channels or features; name: of the layer in its network.
  std::unique_ptr<Layer> (*make)(const LayerOptions&, int64_t in, const std::string& name);
};
const std::vector<LayerType>& layer_types();

// model.layers one after another, named by position as in PyTorch's nn.Sequential. image: [height, width, channels].
// Throws UserError that names the layer that does not fit its input, or whose options do not fit each other.
Network make_layer_list(const std::vector<LayerOptions>& layers, const Shape& image);

}  // namespace dgc
