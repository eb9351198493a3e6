#pragma once

#include <cstdint>

namespace dgc::ptx {

// splitmix64: what a launch draws, it draws again from the same seed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint32_t below(uint32_t bound) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return static_cast<uint32_t>((z ^ z >> 31) % bound);
  }

 private:
  uint64_t state_;
};

}  // namespace dgc::ptx
