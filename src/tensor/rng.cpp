#include "tensor/rng.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

namespace dgc {
namespace {

uint64_t fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

float to_uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace

std::array<uint32_t, 4> Philox::block(uint64_t counter) const {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream_), c3 = static_cast<uint32_t>(stream_ >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed_), k1 = static_cast<uint32_t>(seed_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;  // the golden ratio and sqrt(3) - 1, as the paper gives them
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

float Philox::uniform(uint64_t index) const { return to_uniform(bits(index)); }

float Philox::normal(uint64_t index) const {
  const auto b = block(index);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(to_uniform(b[0]))));
  return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * static_cast<double>(to_uniform(b[1]))));
}

uint32_t Philox::below(uint64_t index, uint32_t n) const {
  return static_cast<uint32_t>((uint64_t{bits(index)} * n) >> 32);
}

uint64_t rng_stream(std::string_view purpose, std::string_view name) { return fnv1a(name, fnv1a("/", fnv1a(purpose))); }

uint64_t rng_stream(std::string_view purpose, uint64_t number) { return rng_stream(purpose, std::to_string(number)); }

std::vector<int32_t> permutation(int64_t n, uint64_t seed, uint64_t stream) {
  const Philox rng(seed, stream);
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i, static_cast<uint32_t>(i))]);
  return order;
}

}  // namespace dgc
