// idx files of images and labels, also packed with gzip. The input: byte 0 says which headers are made up of what
// follows (bits 0 and 1) rather than being the file's own, and which set (bit 2); 2 bytes how long the file of images
// is, then both.
#include "data/images/idx.h"

#include <algorithm>

#include "tests/fuzz/scratch.h"

using namespace dgc;

namespace {

void append_u32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

// A header whose sizes fit the data now and then: random bytes hardly ever do.
std::string images_header(fuzz::Input& input) {
  std::string out;
  append_u32(out, 0x803);
  for (int i = 0; i < 3; ++i) append_u32(out, input.take<uint8_t>());
  return out;
}

std::string labels_header(fuzz::Input& input) {
  std::string out;
  append_u32(out, 0x801);
  append_u32(out, input.take<uint8_t>());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch scratch;
  fuzz::Input input(data, size);
  const auto kind = input.take<uint8_t>();
  const auto images_bytes = input.take<uint16_t>();
  const bool made_images = (kind & 1) != 0, made_labels = (kind & 2) != 0;
  std::string images = made_images ? images_header(input) : "";
  std::string labels = made_labels ? labels_header(input) : "";
  images += input.take_text(images_bytes);
  labels += input.take_text(input.left());

  const Split split = (kind & 4) != 0 ? Split::train : Split::test;
  const std::string prefix = split == Split::train ? "train" : "t10k";
  scratch.write(prefix + "-images-idx3-ubyte", images);
  scratch.write(prefix + "-labels-idx1-ubyte", labels);
  ImageTable table;
  if (!fuzz::accepted(scratch.path(), [&] { table = read_idx(scratch.path(), split, "fix"); })) return 0;

  fuzz::require(table.pixels.size() == table.labels.size() * static_cast<size_t>(table.shape.numel()));
  fuzz::require(std::ranges::all_of(table.labels, [&](uint8_t label) { return label < table.classes; }));
  const auto holds = [](const std::string& file, size_t header, const std::vector<uint8_t>& bytes) {
    return file.size() == header + bytes.size() && std::memcmp(file.data() + header, bytes.data(), bytes.size()) == 0;
  };
  fuzz::require(!made_images || holds(images, 16, table.pixels));
  fuzz::require(!made_labels || holds(labels, 8, table.labels));
  return 0;
}
