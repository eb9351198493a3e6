#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace dgc {

// A file that grows record by record while a run goes on. A full disk does not end a training: what it does not take
// waits in memory and goes out before the next record, and the log gets a warning. Each record reaches the operating
// system at once, so a killed run loses at most a torn last one.
class OutputFile {
 public:
  // Goes on behind what the file holds; makes it where there is none. Throws UserError when it cannot be opened.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();  // warns of what is lost
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void cut(uint64_t bytes);  // keeps so many from its beginning; throws UserError
  void append(std::string_view record);

 private:
  static constexpr size_t kMostWaiting = size_t{16} << 20;  // bytes; more is dropped

  void write();

  std::filesystem::path path_;
  int file_ = -1;
  uint64_t end_ = 0;  // of what is known to be in the file
  std::string waiting_;
  uint64_t dropped_ = 0;  // bytes
  bool failing_ = false;
};

}  // namespace dgc
