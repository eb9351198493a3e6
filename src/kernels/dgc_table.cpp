#include "kernels/dgc_table.h"

#include <vector>

namespace dgc {

DgcTableMemory::DgcTableMemory(const std::shared_ptr<Device>& device, std::span<const DgcSegment> segments,
                               int64_t numel) {
  std::vector<int32_t> segment_of_block;
  for (size_t i = 0; i < segments.size(); ++i) {
    segment_of_block.insert(segment_of_block.end(), static_cast<size_t>(segments[i].blocks()), static_cast<int32_t>(i));
  }
  segments_ = Buffer(device, segments.size_bytes());
  segment_of_block_ = Buffer(device, segment_of_block.size() * sizeof(int32_t));
  device->copy_in(segments_.data(), segments.data(), segments_.bytes());
  device->copy_in(segment_of_block_.data(), segment_of_block.data(), segment_of_block_.bytes());
  table_ = {static_cast<const DgcSegment*>(segments_.data()), static_cast<const int32_t*>(segment_of_block_.data()),
            static_cast<int32_t>(segments.size()), std::ssize(segment_of_block), numel};
}

}  // namespace dgc
