#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dgc {

std::string xxh64_hex(const void* data, size_t bytes);  // 16 lower-case digits

// Writes a file from front to back, hashing it on the way. Every failure is a UserError that names the file and says
// what the system said.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);

  struct Written {
    uint64_t bytes = 0;
    std::string xxh64;
  };
  Written finish();  // the data is on the disk when this returns (fsync)

 private:
  std::filesystem::path path_;
  int file_ = -1;
  void* hash_ = nullptr;
  uint64_t bytes_ = 0;
};

void write_file(const std::filesystem::path& path, const std::string& text);  // with fsync
void sync_directory(const std::filesystem::path& path);                       // names in it survive a power cut
std::string read_file(const std::filesystem::path& path);

}  // namespace dgc
