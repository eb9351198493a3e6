#include "data/images/cifar10.h"

#include "data/file.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr size_t kPixels = size_t{kCifar10Images.side} * kCifar10Images.side;
constexpr size_t kRecord = 1 + 3 * kPixels;
constexpr size_t kMostCifarBytes = size_t{1} << 30;  // CIFAR-10's own files have 29 MiB

void append(const std::string& path, const std::vector<uint8_t>& bytes, ImageTable& table) {
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    throw_user_error(
        "{}: {} bytes are not a positive multiple of a record's {}; the file is truncated or not CIFAR-10's", path,
        bytes.size(), kRecord);
  }
  const size_t records = bytes.size() / kRecord;
  const size_t at = table.pixels.size();
  table.pixels.resize(at + records * 3 * kPixels);
  uint8_t* to = table.pixels.data() + at;
  for (size_t r = 0; r < records; ++r) {
    const uint8_t* record = bytes.data() + r * kRecord;
    if (record[0] >= kCifar10Images.classes)
      throw_user_error("{}: label {} of image {} is not in 0 ... 9", path, record[0], r);
    table.labels.push_back(record[0]);
    for (size_t i = 0; i < kPixels; ++i) {
      for (size_t c = 0; c < 3; ++c) *to++ = record[1 + c * kPixels + i];
    }
  }
}

}  // namespace

ImageTable read_cifar10(const std::string& folder, Split split, const std::string& fix) {
  require_folder(folder, fix);
  std::vector<std::string> names = {"test_batch.bin"};
  if (split == Split::train) {
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
  }
  constexpr SmallImages all = kCifar10Images;
  ImageTable table{{all.side, all.side, all.channels}, all.classes, {}, {}};
  std::vector<uint8_t> bytes;
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (!is_there(path)) throw_user_error("{}: there is no such file; {}", path, fix);
    read_file(path, kMostCifarBytes, bytes);
    table.pixels.reserve(names.size() * bytes.size());  // with what labels take, a little too much
    append(path, bytes, table);
  }
  return table;
}

}  // namespace dgc
