// JPEG files, as they come.
#include <turbojpeg.h>

#include <memory>

#include "tests/fuzz/image.h"

using namespace dgc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<void, decltype(&tjDestroy)> reader(tjInitDecompress(), tjDestroy);
  int width = 0, height = 0, subsampling = 0, colours = 0;
  tjDecompressHeader3(reader.get(), data, size, &width, &height, &subsampling, &colours);
  if (fuzz::takes_long(static_cast<uint64_t>(height), static_cast<uint64_t>(width))) return 0;
  fuzz::check_image({reinterpret_cast<const char*>(data), size});
  return 0;
}
