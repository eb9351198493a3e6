// safetensors files. The input is a file as it is; and a header's text up to the first newline, with what follows as
// the data, which the 8 bytes of length are put in front of. A header that is accepted must tile its data, and be
// accepted as we write it.
#include "run/safetensors.h"

#include <algorithm>

#include "run/safetensors_header.h"
#include "tests/fuzz/input.h"

using namespace dgc;

namespace {

const std::string kName = "fuzz.safetensors";

// Our own count: every byte belongs to one tensor.
void check_tiling(const SafetensorsHeader& header, size_t data_bytes) {
  if (data_bytes > size_t{1} << 20) return;
  std::vector<int> owners(data_bytes);
  for (const SafetensorsEntry& entry : header.tensors) {
    uint64_t elements = 1;
    for (const int64_t size : entry.shape) elements *= static_cast<uint64_t>(size);
    fuzz::require(entry.begin <= entry.end && entry.end <= data_bytes);
    fuzz::require(entry.end - entry.begin == elements * safetensors_dtype_size(entry.dtype));
    for (uint64_t at = entry.begin; at < entry.end; ++at) ++owners[at];
  }
  fuzz::require(std::ranges::all_of(owners, [](int count) { return count == 1; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  fuzz::accepted(kName, [&] { const SafetensorsFile file(all, kName); });

  const size_t newline = std::min(all.find('\n'), all.size());
  const std::string text = all.substr(0, newline), rest = all.substr(std::min(newline + 1, all.size()));
  SafetensorsHeader header;
  if (!fuzz::accepted(kName, [&] { header = parse_safetensors_header(text, rest.size(), kName); })) return 0;
  check_tiling(header, rest.size());
  const SafetensorsHeader again = parse_safetensors_header(to_safetensors_header(header), rest.size(), kName);
  fuzz::require(again == header);

  std::string file(sizeof(uint64_t), '\0');
  const uint64_t length = text.size();
  std::memcpy(file.data(), &length, sizeof(length));
  const SafetensorsFile whole(file + text + rest, kName);
  for (const SafetensorsEntry& entry : header.tensors) fuzz::require(whole.tensors().contains(entry.name));
  return 0;
}
