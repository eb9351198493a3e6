#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tensor/file_descriptor.h"

namespace dgc {

// A file that grows record by record while a run goes on. A full disk does not end a training: records that cannot be
// written wait in memory and are written before the next record, and the log gets a warning. Each record reaches the
// operating system at once, so a killed run loses at most a torn last one.
class OutputFile {
 public:
  // Appends to the file, or creates it. Throws UserError when it cannot be opened.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();  // warns about records that were not written
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void cut(uint64_t bytes);  // keeps the first `bytes` bytes; throws UserError
  void append(std::string_view record);
  void sync();  // so that a power cut leaves what is in the file (fdatasync)

 private:
  static constexpr size_t kMostWaiting = size_t{16} << 20;  // bytes; further records are dropped

  void write();

  std::filesystem::path path_;
  FileDescriptor file_;
  uint64_t end_ = 0;  // bytes that are known to be in the file
  std::string waiting_;
  uint64_t dropped_ = 0;  // bytes
  bool failing_ = false;
  bool loses_ = false;  // a sync has failed
};

}  // namespace dgc
