#include "train/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "tensor/errors.h"

namespace dgc {
namespace {

[[noreturn]] void throw_system(const char* action, const std::filesystem::path& path) {
  throw_user_error("cannot {} {}: {}", action, path.string(), std::strerror(errno));
}

}  // namespace

std::string xxh64_hex(const void* data, size_t bytes) { return fmt::format("{:016x}", XXH64(data, bytes, 0)); }

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) throw_system("create", path_);
  XXH64_state_t* state = XXH64_createState();
  XXH64_reset(state, 0);
  hash_ = state;
}

FileWriter::~FileWriter() {
  if (file_ >= 0) ::close(file_);
  XXH64_freeState(static_cast<XXH64_state_t*>(hash_));
}

void FileWriter::write(const void* data, size_t bytes) {
  XXH64_update(static_cast<XXH64_state_t*>(hash_), data, bytes);
  bytes_ += bytes;
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system("write", path_);
    next += written;
    bytes -= static_cast<size_t>(written);
  }
}

FileWriter::Written FileWriter::finish() {
  if (::fsync(file_) != 0) throw_system("sync", path_);
  if (::close(std::exchange(file_, -1)) != 0) throw_system("close", path_);
  return {bytes_, fmt::format("{:016x}", XXH64_digest(static_cast<XXH64_state_t*>(hash_)))};
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  FileWriter file(path);
  file.write(text.data(), text.size());
  file.finish();
}

void sync_directory(const std::filesystem::path& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) throw_system("open", path);
  const int result = ::fsync(directory);
  ::close(directory);
  if (result != 0) throw_system("sync", path);
}

std::string read_file(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_system("read", path);
  const std::unique_ptr<const int, void (*)(const int*)> closer(&file, [](const int* f) { ::close(*f); });
  struct stat status {};
  if (::fstat(file, &status) != 0) throw_system("read", path);

  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system("read", path);
    if (got == 0) break;  // it has become shorter meanwhile
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace dgc
