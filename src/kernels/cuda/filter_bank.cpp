#include "kernels/cuda/filter_bank.h"

#include <algorithm>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/weights.h"
#include "tensor/errors.h"

namespace dgc::cuda {
namespace {

std::byte* at(const Buffer& memory, size_t offset) { return static_cast<std::byte*>(memory.data()) + offset; }

// Hands out places for filters, one behind the other.
class Places {
 public:
  explicit Places(DType type) : type_(type) {}
  size_t take(const FilterArgs& filter) {
    const size_t at = bytes_;
    bytes_ += aligned_bytes(filter_bytes(filter, type_));
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  DType type_;
  size_t bytes_ = 0;
};

}  // namespace

void FilterBank::open(CudaBackend& backend, DType type, std::span<const FilterUse> uses) {
  DGC_CHECK(gradients_.empty() && (depth_ == 0 || type == type_), "a pass within another kind of pass");
  type_ = type;
  Places filters(type), gradients(type);
  std::vector<FilterCopy> copies;
  if (depth_++ == 0) {
    for (const FilterUse& use : uses) {
      const size_t at = use.filter.stays_as_it_is(type) ? kAsItIs : filters.take(use.filter);
      filters_.push_back({use.filter, use.w.data, at});
    }
    at_least(filters.bytes(), filter_memory_, backend.device(), MemoryUse::scratch);
    for (const Filter& filter : filters_) {
      if (filter.at != kAsItIs) copies.push_back({filter.args, filter.w, at(filter_memory_, filter.at)});
    }
  }
  for (const FilterUse& use : uses) {
    if (use.dw) gradients_.push_back({use.filter, use.dw.data, gradients.take(use.filter)});
  }
  at_least(gradients.bytes(), gradient_memory_, backend.device(), MemoryUse::scratch);
  load_filters(backend, type, copies);
}

void FilterBank::close(CudaBackend& backend) {
  std::vector<FilterCopy> sums;
  for (const Gradient& gradient : gradients_) {
    if (gradient.written) sums.push_back({gradient.args, at(gradient_memory_, gradient.at), gradient.dw});
  }
  gradients_.clear();
  if (--depth_ == 0) filters_.clear();
  add_filters(backend, type_, sums);
}

void FilterBank::drop() {
  depth_ = 0;
  filters_.clear();
  gradients_.clear();
}

const void* FilterBank::filter(const void* w) const {
  const auto found = std::ranges::find(filters_, w, &Filter::w);
  if (found == filters_.end()) return nullptr;
  return found->at == kAsItIs ? w : at(filter_memory_, found->at);
}

void* FilterBank::gradient(const void* dw) {
  const auto found = std::ranges::find(gradients_, dw, &Gradient::dw);
  if (found == gradients_.end()) return nullptr;
  found->written = true;
  return at(gradient_memory_, found->at);
}

}  // namespace dgc::cuda
