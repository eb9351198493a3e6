#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/fuzz/input.h"

namespace dgc::fuzz {

// A folder, in memory where the system has one there, for readers that want paths; gone when the program ends in good
// order.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const bool in_memory = std::filesystem::is_directory("/dev/shm", error);
    path_ = (in_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/dgc_fuzz.XXXXXX";
    require(mkdtemp(path_.data()) != nullptr);
  }
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& bytes) const {
    const int file = open((path_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    close(file);
  }

 private:
  std::string path_;
};

}  // namespace dgc::fuzz
