#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tensor/file_descriptor.h"

struct XXH64_state_s;

namespace dgc {

std::string xxh64_hex(std::string_view bytes);  // 16 lower-case digits

// Writes a file from front to back, hashing it on the way. FileWriter writes a temporary file beside `path`, and
// finish() renames it, so that under its own name the file is whole or as it was before. Where `path` is a link, the
// file behind the link is replaced, and the new file keeps the old one's mode and, if the system permits, its owner. A
// target that cannot be replaced (a device, a pipe, the file that standard output goes to) is written in place. Every
// failure is a UserError that names the file and says what the system said.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();  // without finish() the old file stays
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);

  struct Written {
    uint64_t bytes = 0;
    std::string xxh64;
  };
  Written finish();  // the data is on the disk when this returns (fsync)

 private:
  void open_beside();

  std::filesystem::path path_;
  std::filesystem::path place_, beside_;  // empty: path_ is written in place
  FileDescriptor file_;
  XXH64_state_s* hash_ = nullptr;
  uint64_t bytes_ = 0;
};

void write_file(const std::filesystem::path& path, const std::string& text);  // with a FileWriter
// Throws what the constructor of a FileWriter for `path` would throw, and leaves the file as it is. To be called before
// long work whose result goes there. A pipe or a device is not tried.
void require_writable(const std::filesystem::path& path);
// Writes the file unless it has this text already, so that a file that cannot be written is no error then.
void write_if_changed(const std::filesystem::path& path, const std::string& text);
// Removes from a folder the temporary files of FileWriters that were killed. Those written to in the last minute stay,
// because another process may still be at them. A file that cannot be removed stays too.
void remove_abandoned(const std::filesystem::path& folder);

// Whether `path` is a link whose target is not there, as on a disk that is not mounted. refuse_broken_link() throws
// UserError for such a link.
bool is_broken_link(const std::filesystem::path& path);
void refuse_broken_link(const std::filesystem::path& path);

// All three throw UserError that names the path and says what is wrong with it.
void sync_directory(const std::filesystem::path& path);  // makes its names survive a power cut
// Reads a regular file of at most `most` bytes. Refuses before it has read anything: a file may be a pipe into which
// nobody writes, or larger than the memory.
std::string read_file(const std::filesystem::path& path, uint64_t most = 1 << 30);
void make_directory(const std::filesystem::path& path);  // and those around it, where there is none

}  // namespace dgc
