#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/keys.h"
#include "models/network.h"

namespace dgc {

// A type of layer that an entry of model.layers can name.
struct LayerType {
  std::string name;
  void (*add_keys)(const Section<LayerOptions>&);  // adds the type's own keys; called with the type's section
  // in: channels or features of the layer's input, which are the last size of its shape; name: the layer's name in its
  // network. Throws UserError where the options do not fit each other or the input.
  std::unique_ptr<Layer> (*make)(const LayerOptions&, int64_t in, const std::string& name);
};
const std::vector<LayerType>& layer_types();

// A network of model.layers one after another, which are named by position as in PyTorch's nn.Sequential. image:
// [height, width, channels]. Throws UserError that names the layer that does not fit its input, or whose options do not
// fit each other.
Network make_layer_list(const std::vector<LayerOptions>& layers, const Shape& image);

}  // namespace dgc
