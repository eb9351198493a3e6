#pragma once

#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/carver.h"
#include "tensor/device.h"

namespace dgc {
class CudaBackend;
}

namespace dgc::cuda {

// The filters of a pass (Backend::with_filters) as cuDNN wants them, and the place where cuDNN writes their gradients:
// one launch converts all filters, and one adds all gradients.
class FilterBank {
 public:
  // Queues the copies, and begins a pass, or one within a pass. The latter has the filters of the former. The memory
  // grows and never shrinks.
  void open(CudaBackend&, DType, std::span<const FilterUse>);
  // Queues the sums of the gradients that were written, and ends what the last open() began.
  void close(CudaBackend&);
  // Ends all that has begun, and adds nothing.
  void drop();

  // A filter as cuDNN wants it; null: it is none of the pass.
  const void* filter(const void* w) const;
  // Where the gradient is to be written, in the type of the activations; null: the caller adds the gradient.
  void* gradient(const void* dw) const;
  void wrote_gradient(const void* dw);  // to be called once it is: cuDNN may refuse to write it

 private:
  struct Filter {
    FilterArgs args;
    const void* w;
    std::byte* copy = nullptr;  // in filter_memory_; null: w itself will do
  };
  struct Gradient {
    FilterArgs args;
    void* dw;
    std::byte* sum = nullptr;  // in gradient_memory_
    bool written = false;
  };

  // Give filters, or gradients, their places in memory, and return the bytes of all places.
  size_t place_filters(Carver);
  size_t place_gradients(Carver);

  DType type_ = DType::f32;
  int depth_ = 0;
  std::vector<Filter> filters_;
  std::vector<Gradient> gradients_;  // of the innermost pass
  Buffer filter_memory_, gradient_memory_;
};

}  // namespace dgc::cuda
