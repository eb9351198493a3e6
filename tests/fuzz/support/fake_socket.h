#pragma once

#include <string>
#include <vector>

#include "dist/meeting/socket.h"
#include "tests/fuzz/input.h"

// The functions of dist/meeting/socket.h without a network: fake_socket.cpp takes the place of dist/meeting/socket.cpp.
// Whoever connects to this process, or is connected to, is put here together with all that he says, so nobody ever
// waits.
namespace dgc::fuzz {

using Pieces = std::vector<std::string>;  // what one recv() returns each; an empty one is the end

// The other end of a connection. It has said its pieces and hung up, but still hears.
class Stranger {
 public:
  explicit Stranger(Socket end) : end_(std::move(end)) {}
  std::string heard() const;         // so far
  std::string heard_to_end() const;  // waits until the other side hangs up, too

 private:
  Socket end_;
};

// The next one that accept_from or connect_to returns.
Stranger put_stranger(const Pieces&);
// Those who were never accepted hang up.
void send_home();

// What a side that asks for so many bytes gets of the pieces, which this takes from them. A piece that is longer than
// what is asked for loses its rest, as packets do.
std::string hear(Pieces&, size_t bytes);

// Cuts what was said as the input says.
Pieces cut(const std::string& said, Input&);

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// The bytes of a T; what is missing is zero.
template <typename T>
T from_bytes(const std::string& bytes) {
  T value{};
  std::memcpy(static_cast<void*>(&value), bytes.data(), bytes.size() < sizeof(T) ? bytes.size() : sizeof(T));
  return value;
}

}  // namespace dgc::fuzz
