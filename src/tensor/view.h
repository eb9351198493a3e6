#pragma once

#include <cstddef>

#include "tensor/shape.h"

namespace dgc {

enum class DType { f32, f16, bf16, i32 };

constexpr size_t float_bytes(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }
constexpr size_t dtype_size(DType type) { return type == DType::f16 || type == DType::bf16 ? 2 : 4; }

// Contiguous memory on one device, which the view does not own. A view with null data means "not wanted" or "absent";
// each op says where it accepts a null view. f32() and i32() throw InternalError where the view has another type.
struct View {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;

  explicit operator bool() const { return data != nullptr; }
  int64_t numel() const { return shape.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * dtype_size(dtype); }
  float* f32() const {
    DGC_CHECK(dtype == DType::f32, "not a float32 view");
    return static_cast<float*>(data);
  }
  int32_t* i32() const {
    DGC_CHECK(dtype == DType::i32, "not an int32 view");
    return static_cast<int32_t*>(data);
  }
};

struct ConstView {
  const void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;

  ConstView() = default;
  ConstView(const void* d, const Shape& s, DType t = DType::f32) : data(d), shape(s), dtype(t) {}
  ConstView(const View& v) : data(v.data), shape(v.shape), dtype(v.dtype) {}

  explicit operator bool() const { return data != nullptr; }
  int64_t numel() const { return shape.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * dtype_size(dtype); }
  const float* f32() const {
    DGC_CHECK(dtype == DType::f32, "not a float32 view");
    return static_cast<const float*>(data);
  }
  const int32_t* i32() const {
    DGC_CHECK(dtype == DType::i32, "not an int32 view");
    return static_cast<const int32_t*>(data);
  }
};

}  // namespace dgc
