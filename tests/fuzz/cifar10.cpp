// CIFAR-10's files. The input: byte 0 the set; per file 2 bytes of length and 2 of what is repeated to fill it, then
// that.
#include "data/images/cifar10.h"

#include <algorithm>

#include "tests/fuzz/scratch.h"

using namespace dgc;

namespace {

constexpr size_t kPixels = 32 * 32, kRecord = 1 + 3 * kPixels;

std::string file_from(fuzz::Input& input) {
  const size_t bytes = input.take<uint16_t>() % (4 * kRecord + 2);
  const bool whole = (input.take<uint8_t>() & 1) != 0;  // records
  const std::string pattern = input.take_text(input.take<uint8_t>());
  std::string out(whole ? bytes / kRecord * kRecord : bytes, '\0');
  for (size_t i = 0; i < out.size() && !pattern.empty(); ++i) out[i] = pattern[i % pattern.size()];
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch scratch;
  fuzz::Input input(data, size);
  const Split split = (input.take<uint8_t>() & 1) != 0 ? Split::train : Split::test;
  std::string all;
  for (int i = 1; i <= (split == Split::train ? 5 : 1); ++i) {
    const std::string bytes = file_from(input);
    all += bytes;
    scratch.write(split == Split::train ? "data_batch_" + std::to_string(i) + ".bin" : "test_batch.bin", bytes);
  }
  ImageTable table;
  if (!fuzz::accepted(scratch.path(), [&] { table = read_cifar10(scratch.path(), split, "fix"); })) return 0;

  fuzz::require(all.size() == table.labels.size() * kRecord);
  fuzz::require(table.pixels.size() == table.labels.size() * 3 * kPixels);
  for (size_t r = 0; r < table.labels.size(); ++r) {
    const auto* record = reinterpret_cast<const uint8_t*>(all.data()) + r * kRecord;
    fuzz::require(table.labels[r] == record[0] && record[0] < table.classes);
    for (size_t i = 0; i < 3 * kPixels; ++i) {
      fuzz::require(table.pixels[r * 3 * kPixels + i] == record[1 + i % 3 * kPixels + i / 3]);
    }
  }
  return 0;
}
