#include "optim/dgc_layout.h"

#include <algorithm>
#include <cmath>

namespace dgc {

bool is_compressed(const ParamSpec& spec) { return spec.shape.rank() >= 2; }

int64_t kept_elements(int64_t numel, double sparsity) {
  const auto k = static_cast<int64_t>(std::llround((1 - sparsity) * static_cast<double>(numel)));
  return std::clamp<int64_t>(k, 1, numel);
}

DgcLayout make_dgc_layout(const ParamLayout& params, double sparsity, WireValues values) {
  DgcLayout layout;
  std::vector<WireTensor> tensors;
  for (int i = 0; i < params.size(); ++i) {
    const int64_t numel = params.numel(i);
    if (numel == 0) continue;
    if (is_compressed(params.spec(i))) {
      WireTensor tensor;
      tensor.numel = numel;
      tensor.k = kept_elements(numel, sparsity);
      tensors.push_back(tensor);
      DgcSegment segment;
      segment.offset = params.offset(i);
      layout.segments.push_back(segment);
    } else {
      layout.dense.push_back({params.offset(i), numel, layout.dense_numel});
      layout.dense_numel += numel;
    }
  }
  layout.wire = WireLayout(std::move(tensors), values);
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    const WireTensor& tensor = layout.wire.tensors()[i];
    DgcSegment& segment = layout.segments[i];
    segment = {segment.offset,    tensor.numel,     tensor.k,     tensor.block_ends_at,
               tensor.offsets_at, tensor.values_at, layout.blocks};
    layout.blocks += segment.blocks();
  }
  return layout;
}

DgcTables::DgcTables(const std::shared_ptr<Device>& device, const DgcLayout& layout)
    : segments_(device, layout.segments.size() * sizeof(DgcSegment)),
      ranges_(device, layout.dense.size() * sizeof(DgcRange)) {
  device->copy_in(segments_.data(), layout.segments.data(), segments_.bytes());
  device->copy_in(ranges_.data(), layout.dense.data(), ranges_.bytes());
  table_ = {static_cast<const DgcSegment*>(segments_.data()), static_cast<int32_t>(layout.segments.size()),
            layout.blocks};
  dense_ = {static_cast<const DgcRange*>(ranges_.data()), static_cast<int32_t>(layout.dense.size()),
            layout.dense_numel};
}

}  // namespace dgc
