#pragma once

#include "tensor/shape.h"

namespace dgc {

// Throws UserError naming the layer unless x is [batch, height, width, channels].
inline void require_image(const Shape& x, const char* layer) {
  if (x.rank() != 4)
    throw_user_error("{} expects an image [batch, height, width, channels] but its input is {}", layer, x.str());
}

}  // namespace dgc
