#pragma once

#include <cstdint>

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/pack.cuh"
#include "tensor/errors.h"
#include "tensor/view.h"

namespace dgc::cuda {

// Calls body.operator()<T>() with the type of activations that `type` names.
template <typename Body>
void dispatch(DType type, const Body& body) {
  switch (type) {
    case DType::f32:
      return body.template operator()<float>();
    case DType::f16:
      return body.template operator()<f16>();
    case DType::bf16:
      return body.template operator()<bf16>();
    case DType::i32:
      break;
  }
  DGC_CHECK(false, "activations of a type that kernels do not take");
}

// Calls body.operator()<T>() with an unsigned integer of the same size as `type`, for ops that only move elements.
template <typename Body>
void dispatch_size(DType type, const Body& body) {
  if (dtype_size(type) == 2) return body.template operator()<uint16_t>();
  body.template operator()<uint32_t>();
}

// Calls body.operator()<V>(), where V is the number of elements that a thread takes at a time: kPack<T> if all pointers
// are aligned to kAlignment and kPack<T> divides `run`, else 1. `run` is the number of elements that lie in
// a row; the bitwise or of several such numbers stands for all of them, and 0 for any number.
template <typename T, typename Body, typename... Pointers>
void dispatch_packs(int64_t run, const Body& body, Pointers... pointers) {
  if (run % kPack<T> == 0 && aligned(pointers...)) {
    body.template operator()<kPack<T>>();
  } else {
    body.template operator()<1>();
  }
}

template <typename T>
const T* pointer(ConstView view) {
  return static_cast<const T*>(view.data);
}
template <typename T>
T* pointer(View view) {
  return static_cast<T*>(view.data);
}

}  // namespace dgc::cuda
