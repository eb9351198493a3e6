#include "layers/padded_shortcut.h"

#include "layers/image_shape.h"

namespace dgc {

PaddedShortcut::PaddedShortcut(int64_t in, int64_t out, int64_t stride) : in_(in), out_(out), stride_(stride) {
  DGC_CHECK(in > 0 && out >= in && stride > 0, "shortcut sizes");
}

Shape PaddedShortcut::output_shape(std::span<const Shape> in) const {
  require_image(in[0], "shortcut");
  if (in[0][3] != in_) {
    throw_user_error("shortcut expects [batch, height, width, {}] but its input is {}", in_, in[0].str());
  }
  const ShortcutArgs a = args(in[0]);
  return {a.batch, a.out_h(), a.out_w(), a.out_c};
}

void PaddedShortcut::forward(const ForwardArgs& f) const {
  f.backend.shortcut_forward(args(f.x[0].shape), f.x[0], f.y);
}

void PaddedShortcut::backward(const BackwardArgs& b) const {
  if (b.dx[0]) b.backend.shortcut_backward(args(b.x[0].shape), b.dy, b.dx[0]);
}

}  // namespace dgc
