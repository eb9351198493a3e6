#include "tensor/file_descriptor.h"

#include <cerrno>

namespace dgc {

bool write_all(const FileDescriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

std::optional<size_t> read_all(const FileDescriptor& file, std::span<std::byte> bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno != EINTR) return std::nullopt;
    if (got == 0) break;
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return filled;
}

}  // namespace dgc
