#pragma once

#include <unistd.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace dgc {

// Owns a file descriptor, also that of a socket, and closes it when destroyed. It is false where the call that should
// have made it failed.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  // Returns what close() returns: some file systems tell only then that they could not write.
  int close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_ = -1;
};

// write_all() and read_all() go on after a signal.
//
// Returns false, and errno says why, where the system refuses.
bool write_all(const FileDescriptor&, std::span<const std::byte>);
// Reads until `bytes` is full or the file ends, and returns how many there were; nothing, and errno says why, where the
// system refuses.
std::optional<size_t> read_all(const FileDescriptor&, std::span<std::byte> bytes);

}  // namespace dgc
