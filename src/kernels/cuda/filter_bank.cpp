#include "kernels/cuda/filter_bank.h"

#include <algorithm>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/weights.h"
#include "tensor/errors.h"

namespace dgc::cuda {

size_t FilterBank::place_filters(Carver memory) {
  for (Filter& filter : filters_) {
    if (filter.args.stays_as_it_is(type_)) continue;
    filter.copy = memory.take<std::byte>(static_cast<int64_t>(filter_bytes(filter.args, type_)));
  }
  return memory.bytes();
}

size_t FilterBank::place_gradients(Carver memory) {
  for (Gradient& gradient : gradients_) {
    gradient.sum = memory.take<std::byte>(static_cast<int64_t>(filter_bytes(gradient.args, type_)));
  }
  return memory.bytes();
}

void FilterBank::open(CudaBackend& backend, DType type, std::span<const FilterUse> uses) {
  DGC_CHECK(gradients_.empty() && (depth_ == 0 || type == type_), "a pass within another kind of pass");
  type_ = type;
  std::vector<FilterCopy> copies;
  if (depth_++ == 0) {
    for (const FilterUse& use : uses) filters_.push_back({use.filter, use.w.data});
    place_filters(Carver(at_least(place_filters(Carver()), filter_memory_, backend.device(), MemoryUse::scratch)));
    for (const Filter& filter : filters_) {
      if (filter.copy != nullptr) copies.push_back({filter.args, filter.w, filter.copy});
    }
  }
  for (const FilterUse& use : uses) {
    if (use.dw) gradients_.push_back({use.filter, use.dw.data});
  }
  place_gradients(Carver(at_least(place_gradients(Carver()), gradient_memory_, backend.device(), MemoryUse::scratch)));
  load_filters(backend, type, copies);
}

void FilterBank::close(CudaBackend& backend) {
  std::vector<FilterCopy> sums;
  for (const Gradient& gradient : gradients_) {
    if (gradient.written) sums.push_back({gradient.args, gradient.sum, gradient.dw});
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
  return found->copy == nullptr ? w : found->copy;
}

void* FilterBank::gradient(const void* dw) const {
  const auto found = std::ranges::find(gradients_, dw, &Gradient::dw);
  return found == gradients_.end() ? nullptr : found->sum;
}

void FilterBank::wrote_gradient(const void* dw) { std::ranges::find(gradients_, dw, &Gradient::dw)->written = true; }

}  // namespace dgc::cuda
