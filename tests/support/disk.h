#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// Disks that are full.
namespace dgc::test {

// While it lives, no file of this process grows beyond so many bytes: write() says so, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit old_{};
};

// A small file system in memory, seen by this process alone.
class SmallDisk {
 public:
  SmallDisk(const std::filesystem::path& at, size_t bytes) : path_(at) {
    std::filesystem::create_directories(at);
    const std::string size = "size=" + std::to_string(bytes);
    mounted_ = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount("tmpfs", at.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }  // it takes root's rights
  // Leaves about so many bytes.
  void fill(size_t left) const {
    std::ofstream file(path_ / "filler", std::ios::binary);
    const size_t free = std::filesystem::space(path_).available;
    if (free > left) file << std::string(free - left, 'x');
  }
  void make_room() const { std::filesystem::remove(path_ / "filler"); }

 private:
  std::filesystem::path path_;
  bool mounted_ = false;
};

}  // namespace dgc::test
