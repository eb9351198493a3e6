#include <limits>
#include <vector>

#include "kernels/cuda/im2col.cuh"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/weights.cuh"
#include "kernels/cuda/weights.h"

namespace dgc::cuda {
namespace {

FilterShape shape_of(const FilterArgs& filter) {
  DGC_CHECK(filter.numel() <= std::numeric_limits<int32_t>::max(), "a convolution has 2^31 weights or more");
  return {static_cast<uint32_t>(filter.out), static_cast<uint32_t>(filter.in), static_cast<uint32_t>(filter.taps)};
}

std::vector<FilterMove> moves_of(std::span<const FilterCopy> copies) {
  std::vector<FilterMove> moves;
  for (const FilterCopy& copy : copies) {
    moves.push_back({.shape = shape_of(copy.filter), .from = copy.from, .to = copy.to});
  }
  return moves;
}

}  // namespace

size_t filter_bytes(const FilterArgs& filter, DType type) { return shape_of(filter).numel() * dtype_size(type); }

void load_filters(CudaBackend& backend, DType type, std::span<const FilterCopy> copies) {
  Queue queue(backend);
  load_filters(queue, type, moves_of(copies));
}

void add_filters(CudaBackend& backend, DType type, std::span<const FilterCopy> copies) {
  Queue queue(backend);
  add_filters(queue, type, moves_of(copies));
}

void load_turned_filter(CudaBackend& backend, const Conv2dArgs& args, ConstView w, DType type, void* to) {
  Queue queue(backend);
  load_turned_filter(queue, shape_of(args.filter()), static_cast<uint32_t>(args.groups), w, type, to);
}

void im2col(CudaBackend& backend, const Windows& windows, int64_t first, int64_t count, ConstView image,
            void* columns) {
  Queue queue(backend);
  im2col(queue, windows, first, count, image, columns);
}

void add_bias(CudaBackend& backend, ConstView b, View y) {
  Queue queue(backend);
  add_bias(queue, b, y);
}

void add_column_sums(CudaBackend& backend, ConstView dy, View db) {
  Queue queue(backend);
  add_column_sums(queue, dy, db);
}

}  // namespace dgc::cuda
