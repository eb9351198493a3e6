#include <spng.h>

#include <memory>

#include "data/decode_image.h"
#include "tensor/errors.h"

namespace dgc {

void decode_png(std::span<const uint8_t> bytes, const std::string& name, RgbImage& out) {
  const auto check = [&name](int error) {
    if (error != 0) throw_user_error("{}: the PNG file is corrupt or truncated: {}", name, spng_strerror(error));
  };
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(0), spng_ctx_free);
  DGC_CHECK(context != nullptr, "spng_ctx_new");
  check(spng_set_png_buffer(context.get(), bytes.data(), bytes.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(context.get(), &header));
  check_image_size(header.height, header.width, name);
  size_t size = 0;
  check(spng_decoded_image_size(context.get(), SPNG_FMT_RGB8, &size));
  out.height = header.height;
  out.width = header.width;
  out.pixels.resize(size);
  check(spng_decode_image(context.get(), out.pixels.data(), size, SPNG_FMT_RGB8, 0));
}

}  // namespace dgc
