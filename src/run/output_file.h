#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "tensor/file_descriptor.h"

namespace dgc {

// A file that grows record by record while a run goes on. A full disk does not end a training: records that cannot be
// written wait in memory and are written before the next record, and the log gets a warning. Each record reaches the
// operating system at once, so a killed run loses at most a torn last one. Whole records follow what is in the file,
// also where somebody has emptied it meanwhile.
class OutputFile {
 public:
  // Appends to the file, or creates it. Throws UserError when it cannot be opened.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();  // warns about records that were not written
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void cut(uint64_t bytes);  // keeps the first `bytes` bytes, if there are more; throws UserError
  void append(std::string_view record);
  void sync();  // so that a power cut leaves what is in the file (fdatasync)
  // Where another program has removed or replaced the file, as editors do, what is appended from now on goes into the
  // file that is there, which may not be a link, and the log gets a warning. A file that was moved is kept.
  void follow_name();
  uint64_t waiting() const { return waiting_bytes_; }  // bytes of the records that could not be written yet
  // Whether another program has taken the file's place, as follow_name() last saw it, so that what is appended is lost.
  bool nameless() const { return nameless_; }

 private:
  static constexpr size_t kMostWaiting = size_t{16} << 20;  // bytes; further records are dropped

  void write();
  bool write(const std::string& record) const;  // false: the file has none of it, or cannot be cut; see errno

  std::filesystem::path path_;
  FileDescriptor file_;
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  uint64_t dropped_ = 0;  // bytes
  bool failing_ = false;
  bool loses_ = false;     // a sync has failed
  bool nameless_ = false;  // the file has lost its name, and there can be none in its place
};

}  // namespace dgc
