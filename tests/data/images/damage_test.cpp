#include "data/images/open_images.h"
#include "tensor/rng.h"
#include "tests/data/images/images.h"

// Whatever happens to a file's bytes, reading it ends in images or in a UserError: never in a crash (the sanitizers
// look on), another exception, or a label out of range.
namespace dgc {
namespace {

Bytes damaged(Bytes bytes, const Philox& rng) {
  const auto size = static_cast<uint32_t>(bytes.size());
  if (rng.below(0, 3) == 0) bytes.resize(rng.below(1, size));
  if (bytes.empty()) return bytes;
  for (uint32_t i = 0; i < rng.below(2, 4); ++i) {
    // Headers are a small part of a file, and the part that misleads a reader: half of the flips go there.
    const uint32_t range = rng.below(3 + 4 * i, 2) == 0 ? std::min(size, 64u) : size;
    bytes[rng.below(4 + 4 * i, range) % bytes.size()] ^= static_cast<uint8_t>(1 + rng.below(5 + 4 * i, 255));
  }
  return bytes;
}

struct Set {
  decltype(&open_mnist) open;
  std::string path;
  ImageOptions options{.image_size = 16};
};

// Reads everything; true when that went well.
bool reads(const Set& set) {
  try {
    const auto dataset = set.open(set.path, set.options, Split::train);
    std::vector<float> out(static_cast<size_t>(dataset->shape().numel()));
    for (int64_t i = 0; i < dataset->size(); ++i) {
      const Draw draw(1, 0, i);
      const int32_t label = dataset->read(i, i % 2 == 0 ? &draw : nullptr, out.data());
      if (label < 0 || label >= dataset->classes()) FAIL("label " << label);
    }
    return true;
  } catch (const UserError& error) {
    CHECK(std::string(error.what()).find(set.path) != std::string::npos);
    return false;
  }
}

void damage(const TempFolder& folder, const Set& set, const std::string& name, const Bytes& bytes, int times) {
  folder.write(name, bytes);
  REQUIRE(reads(set));
  int failed = 0;
  for (int i = 0; i < times; ++i) {
    folder.write(name, damaged(bytes, Philox(7, static_cast<uint64_t>(i))));
    failed += !reads(set);
  }
  CHECK(failed > 0);
  folder.write(name, bytes);
}

TEST_CASE("damaged idx files") {
  const TempFolder folder;
  const Set set{open_mnist, folder.path()};
  const Bytes images = idx_bytes({0x803, 9, 4, 4}, counting(9 * 16)), labels = idx_bytes({0x801, 9}, counting(9));
  folder.write("train-labels-idx1-ubyte", labels);
  SECTION("gzipped images") { damage(folder, set, "train-images-idx3-ubyte.gz", gzip(images), 400); }
  SECTION("plain images") { damage(folder, set, "train-images-idx3-ubyte", images, 400); }
  SECTION("labels") {
    folder.write("train-images-idx3-ubyte", images);
    damage(folder, set, "train-labels-idx1-ubyte", labels, 400);
  }
}

TEST_CASE("damaged CIFAR-10 files") {
  const TempFolder folder;
  for (int i = 1; i <= 5; ++i) folder.write("data_batch_" + std::to_string(i) + ".bin", Bytes(3073, 9));
  damage(folder, {open_cifar10, folder.path()}, "data_batch_2.bin", Bytes(2 * 3073, 4), 100);
}

TEST_CASE("damaged JPEG and PNG files") {
  const TempFolder folder;
  const Set set{open_image_folder, folder.path()};
  Bytes pixels(48 * 40 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i / 7);
  SECTION("JPEG") { damage(folder, set, "train/a/x.jpg", rgb_jpeg(pixels, 48, 40), 400); }
  SECTION("JPEG with subsampling") {
    damage(folder, set, "train/a/x.jpg", jpeg_bytes(pixels, 48, 40, TJPF_RGB, TJSAMP_420), 400);
  }
  SECTION("PNG") { damage(folder, set, "train/a/x.png", png_bytes(pixels, 48, 40), 400); }
}

}  // namespace
}  // namespace dgc
