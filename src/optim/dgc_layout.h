#pragma once

#include <cstdint>
#include <vector>

#include "dist/wire.h"
#include "kernels/dgc_args.h"
#include "tensor/params.h"

namespace dgc {

// How one sparsity splits a model into what is compressed and what travels dense. `dgc plan` reads it too.
struct DgcLayout {
  std::vector<DgcSegment> segments;  // tensors of two and more dimensions, in the layout's order
  WireLayout wire;                   // their message
  std::vector<DgcRange> dense;       // the others: biases, BatchNorm's scale and shift
  int64_t dense_numel = 0;

  int64_t blocks = 0;  // of all segments

  // What one worker sends per step.
  int64_t sent_bytes() const {
    return static_cast<int64_t>(wire.message_bytes()) + dense_numel * int64_t{sizeof(float)};
  }
};

// True for a tensor that is compressed.
bool is_compressed(const ParamSpec& spec);

// How many of numel elements are sent: max(1, round((1 - sparsity) * numel)).
int64_t kept_elements(int64_t numel, double sparsity);

// A layout's tables on the device.
class DgcTables {
 public:
  DgcTables() = default;
  DgcTables(const std::shared_ptr<Device>& device, const DgcLayout& layout);

  const DgcTable& table() const { return table_; }
  const DgcDense& dense() const { return dense_; }

 private:
  Buffer segments_, ranges_;
  DgcTable table_;
  DgcDense dense_;
};

DgcLayout make_dgc_layout(const ParamLayout& params, double sparsity, WireValues values);

}  // namespace dgc
