#pragma once

#include <memory>
#include <span>

#include "kernels/dgc_args.h"
#include "tensor/device.h"

namespace dgc {

// A table and the device memory that it points to.
class DgcTableMemory {
 public:
  DgcTableMemory() = default;
  // The segments are in the order of first_block. numel: of all of them, without the gaps within them.
  DgcTableMemory(const std::shared_ptr<Device>&, std::span<const DgcSegment>, int64_t numel);

  const DgcTable& table() const { return table_; }

 private:
  Buffer segments_, segment_of_block_;
  DgcTable table_;
};

}  // namespace dgc
