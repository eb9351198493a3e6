#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tensor/errors.h"

// What all fuzzers need: pieces of the input, and a condition that must hold.
namespace dgc::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  size_t left() const { return left_; }
  // Zeros where the input has ended.
  template <typename T>
  T take() {
    T value{};
    take_bytes(&value, sizeof(value));
    return value;
  }
  size_t take_bytes(void* to, size_t bytes) {
    const size_t have = bytes < left_ ? bytes : left_;
    if (have == 0) return 0;
    std::memcpy(to, data_, have);
    data_ += have;
    left_ -= have;
    return have;
  }
  std::string take_text(size_t bytes) {
    std::string text(bytes < left_ ? bytes : left_, '\0');
    take_bytes(text.data(), text.size());
    return text;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

inline void require(bool condition) {
  if (!condition) std::abort();
}

// Whether the work is done, rather than refused in a sentence that names `where`. Any other exception is a finding.
template <typename Work>
bool accepted(const std::string& where, const Work& work) {
  try {
    work();
    return true;
  } catch (const UserError& error) {
    require(std::string(error.what()).find(where) != std::string::npos);
    return false;
  }
}

}  // namespace dgc::fuzz
