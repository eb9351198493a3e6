#include "data/images/idx.h"

#include <algorithm>
#include <array>

#include "data/file.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr uint64_t kMostIdxBytes = uint64_t{1} << 34;  // a gzip file of a few MiB may unpack to this much
constexpr uint32_t kLongestSide = 4096;                // a header with more is damaged, not one of a large picture

struct Idx {
  std::string path;
  std::array<uint32_t, 3> sizes{1, 1, 1};
  std::vector<uint8_t> bytes;
};

std::string find(const std::string& folder, const std::string& name, const std::string& fix) {
  const std::string path = folder + "/" + name;
  for (const std::string& found : {path, path + ".gz"}) {
    if (is_there(found)) return found;
  }
  throw_user_error("{}: there is no such file, nor one with .gz behind it; {}", path, fix);
}

uint32_t read_u32(InputFile& file) {
  std::array<uint8_t, 4> b{};
  if (file.read(b.data(), 4) < 4) throw_user_error("{}: truncated inside its header", file.path());
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
}

Idx read(const std::string& path, uint32_t dimensions) {
  InputFile file(path);
  Idx idx;
  idx.path = path;
  const uint32_t magic = read_u32(file), wanted = 0x800 | dimensions;
  if (magic != wanted) {
    throw_user_error("{}: not an idx file of bytes in {} dimensions: it begins with 0x{:08x} instead of 0x{:08x}", path,
                     dimensions, magic, wanted);
  }
  for (uint32_t i = 0; i < dimensions; ++i) idx.sizes[i] = read_u32(file);
  const auto [count, height, width] = idx.sizes;
  if (count == 0 || count > INT32_MAX) throw_user_error("{}: its header promises {} items", path, count);
  if (std::min(height, width) < 1 || std::max(height, width) > kLongestSide) {
    throw_user_error("{}: its header promises images of {} x {} pixels", path, height, width);
  }
  const uint64_t expected = uint64_t{count} * height * width;
  if (expected > kMostIdxBytes) {
    throw_user_error("{}: its header promises {} bytes of data, which are more than the {} GiB that may be", path,
                     expected, kMostIdxBytes >> 30);
  }
  const uint64_t actual = file.append(idx.bytes, expected + 1);  // one byte more, to see the end (and gzip's checksum)
  if (actual < expected) {
    throw_user_error("{}: truncated: its header promises {} bytes of data, it has {}", path, expected, actual);
  }
  if (actual > expected) throw_user_error("{}: longer than the {} bytes its header promises", path, expected);
  return idx;
}

}  // namespace

ImageTable read_idx(const std::string& folder, Split split, const std::string& fix) {
  require_folder(folder, fix);
  const std::string prefix = split == Split::train ? "train" : "t10k";
  Idx images = read(find(folder, prefix + "-images-idx3-ubyte", fix), 3);
  Idx labels = read(find(folder, prefix + "-labels-idx1-ubyte", fix), 1);
  if (images.sizes[0] != labels.sizes[0]) {
    throw_user_error("{} has {} images, but {} has {} labels", images.path, images.sizes[0], labels.path,
                     labels.sizes[0]);
  }
  for (size_t i = 0; i < labels.bytes.size(); ++i) {
    if (labels.bytes[i] >= kMnistImages.classes) {
      throw_user_error("{}: label {} of image {} is not in 0 ... 9", labels.path, labels.bytes[i], i);
    }
  }
  return {
      {images.sizes[1], images.sizes[2], 1}, kMnistImages.classes, std::move(images.bytes), std::move(labels.bytes)};
}

}  // namespace dgc
