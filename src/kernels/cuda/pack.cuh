#pragma once

#include "kernels/cuda/alignment.h"
#include "kernels/cuda/model.h"

namespace dgc::cuda {

// The number of elements in the widest load or store. Kernel bodies take V elements at a time, where V is 1 or a pack
// of at most kPack<T> elements. The memory of a pack must be aligned to the size of the pack, which the host side
// checks.
template <typename T>
inline constexpr int kPack = static_cast<int>(kAlignment / sizeof(T));

// A pack is stored as whole words, so that it stays in registers and the compiler makes one access.
template <int kBytes>
struct alignas(kBytes) Words {
  uint32_t word[kBytes / 4];
};
template <>
struct Words<2> {
  uint16_t word[1];
};

template <typename T, int V>
using Pack = Words<static_cast<int>(sizeof(T)) * V>;

template <int V, typename T>
__device__ inline Pack<T, V> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}

template <typename T, int V>
__device__ inline void unpack(const Pack<T, V>& pack, float (&to)[V]) {
  T items[V];
  memcpy(items, &pack, sizeof pack);
#pragma unroll
  for (int j = 0; j < V; ++j) to[j] = to_float(items[j]);
}

template <int V, typename T>
__device__ inline void load(const T* from, float (&to)[V]) {
  unpack<T, V>(load_pack<V>(from), to);
}

// Stores a pack in one access. The compiler would make several stores of a copied struct where it cannot see the
// struct's alignment.
template <int V, typename T>
__device__ inline void store_pack(const Pack<T, V>& pack, T* to) {
  if constexpr (sizeof pack == 16) {
    __stcg(reinterpret_cast<uint4*>(to), make_uint4(pack.word[0], pack.word[1], pack.word[2], pack.word[3]));
  } else if constexpr (sizeof pack == 8) {
    __stcg(reinterpret_cast<uint2*>(to), make_uint2(pack.word[0], pack.word[1]));
  } else {
    *reinterpret_cast<Pack<T, V>*>(to) = pack;
  }
}

template <int V, typename T>
__device__ inline void store(const float (&from)[V], T* to) {
  T items[V];
#pragma unroll
  for (int j = 0; j < V; ++j) items[j] = from_float<T>(from[j]);
  Pack<T, V> pack;
  memcpy(&pack, items, sizeof pack);
  store_pack<V>(pack, to);
}

// Loads V fp32 numbers that need not be aligned: parameters or statistics of neighbouring channels.
template <int V>
__device__ inline void load_floats(const float* from, float (&to)[V]) {
#pragma unroll
  for (int j = 0; j < V; ++j) to[j] = from[j];
}

struct NoShared {};

inline constexpr int kElementwiseBlock = 256;

// The base of kernels each of whose threads takes an element or a pack, and that share no memory.
struct ElementwiseKernel {
  static constexpr int kBlock = kElementwiseBlock;
  using Shared = NoShared;
};

// The number of blocks for n elements, if each thread takes V of them.
constexpr int64_t elementwise_blocks(int64_t n, int v) {
  const int64_t per_block = int64_t{kElementwiseBlock} * v;
  return (n + per_block - 1) / per_block;
}

// Calls body<N>(i) for the elements i ... i + N - 1, where N is V or, at the end, 1, of the pack at `at` of n elements.
template <int V, typename Body>
__device__ inline void pack_at(int64_t at, int64_t n, const Body& body) {
  if (at + V <= n) {
    body.template operator()<V>(at);
  } else {
    for (int64_t i = at; i < n; ++i) body.template operator()<1>(i);
  }
}

// Calls body<N>(i) likewise for this thread's pack. Each of the n elements is covered once.
template <int V, typename Body>
__device__ inline void each_element(int64_t n, const Body& body) {
  pack_at<V>((int64_t{blockIdx.x} * kElementwiseBlock + threadIdx.x) * V, n, body);
}

}  // namespace dgc::cuda
