#pragma once

#include <library_types.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cuda/model.h"

namespace dgc::fake_cuda {

// Arrays of floating-point numbers of a type that is known when a call is executed.
enum class Element { f32, f16, bf16 };

inline size_t size_of(Element type) { return type == Element::f32 ? 4 : 2; }

inline float get(Element type, const void* array, size_t i) {
  switch (type) {
    case Element::f32:
      return static_cast<const float*>(array)[i];
    case Element::f16:
      return cuda::to_float(static_cast<const cuda::f16*>(array)[i]);
    case Element::bf16:
      return cuda::to_float(static_cast<const cuda::bf16*>(array)[i]);
  }
  return 0;
}

inline void put(Element type, void* array, size_t i, float value) {
  switch (type) {
    case Element::f32:
      static_cast<float*>(array)[i] = value;
      break;
    case Element::f16:
      static_cast<cuda::f16*>(array)[i] = cuda::from_float<cuda::f16>(value);
      break;
    case Element::bf16:
      static_cast<cuda::bf16*>(array)[i] = cuda::from_float<cuda::bf16>(value);
      break;
  }
}

inline std::vector<float> get_all(Element type, const void* array, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = get(type, array, i);
  return values;
}

inline void put_all(Element type, void* array, const std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) put(type, array, i, values[i]);
}

// Rounded to TF32, which has 10 bits of mantissa, to the nearest, ties to even. Finite numbers only.
inline float to_tf32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t{0x1fff});
}

// What a library leaves in a workspace is anything.
inline void spoil(void* workspace, size_t bytes) {
  if (bytes > 0) std::memset(workspace, 0xff, bytes);
}

}  // namespace dgc::fake_cuda
