#include <spng.h>

#include <memory>

#include "data/images/decode_image.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// libspng unpacks texts and colour profiles too, which nobody asks for: a small file may hold gigabytes of them.
constexpr size_t kMostBesidePixels = size_t{16} << 20;  // bytes

}  // namespace

void decode_png(std::span<const uint8_t> bytes, const std::string& name, RgbImage& out) {
  const auto check = [&name](int error) {
    if (error == SPNG_ECHUNK_LIMITS) {
      throw_user_error(
          "{}: the PNG file holds more than {} MiB beside its pixels, or too many texts, or an empty one; save it "
          "again without texts and colour profile",
          name, kMostBesidePixels >> 20);
    }
    if (error != 0) throw_user_error("{}: the PNG file is corrupt or truncated: {}", name, spng_strerror(error));
  };
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(0), spng_ctx_free);
  DGC_CHECK(context != nullptr, "spng_ctx_new");
  check(spng_set_chunk_limits(context.get(), kMostBesidePixels, kMostBesidePixels));
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
