#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace dgc {

// What the processes of a run know and nobody else does, so that they can prove to each other that they belong together
// (dist/meeting/handshake.h). It is wiped from memory with the object.
class Secret {
 public:
  using Bytes = std::array<std::byte, 32>;

  // The secret of a run that has none. Everybody knows it, so it protects nothing.
  Secret() = default;
  explicit Secret(const Bytes& bytes) : bytes_(bytes), given_(true) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  bool given() const { return given_; }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_{};
  bool given_ = false;
};

// The shell's words that make a file for read_secret(), for messages.
inline constexpr const char* kHowToMakeSecret = "(umask 077; head -c 32 /dev/urandom | base64 > FILE)";

// A secret of 32 random bytes.
Secret make_secret();

// The secret that follows from a file: SHA-256 of its bytes without the white space at its end, so that copies which
// differ in a newline are the same. Throws UserError that names the environment variable and the file when the file
// cannot be read, is no regular file, is open to others than its owner, has fewer than 16 bytes or more than 4096, or
// holds a zero byte.
Secret read_secret(const std::string& variable, const std::string& path);

}  // namespace dgc
