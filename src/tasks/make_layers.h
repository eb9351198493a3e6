#pragma once

#include <vector>

#include "config/options.h"
#include "models/network.h"

namespace dgc {

// model.layers one after another, named by position as in PyTorch's nn.Sequential. image: [height, width, channels].
// Throws UserError that names the layer that does not fit its input, or whose options do not fit each other.
Network make_layer_list(const std::vector<LayerOptions>& layers, const Shape& image);

}  // namespace dgc
