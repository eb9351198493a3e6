#include "run/run_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

#include "tensor/errors.h"
#include "tensor/machine_name.h"

namespace dgc {
namespace {

constexpr const char* kName = ".lock";

struct Holder {
  int64_t process = 0;  // 0: not known
  std::string host;

  std::string text() const { return process > 0 ? fmt::format("process {} on {}", process, host) : "another process"; }
};

// A run may come from anywhere, so only what can be a machine's name is believed to be one.
bool is_host_name(const std::string& name) {
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
         std::string::npos;
}

Holder read_holder(int file) {
  std::array<char, 300> bytes{};
  if (::pread(file, bytes.data(), bytes.size() - 1, 0) <= 0) return {};
  Holder holder;
  std::istringstream text(bytes.data());
  if (!(text >> holder.process >> holder.host) || !is_host_name(holder.host)) return {};
  return holder;
}

// Whether another process than this one has that number. It may be somebody else's (EPERM).
bool is_another_process(int64_t process) {
  if (process <= 0 || process == getpid() || !std::in_range<pid_t>(process)) return false;
  return ::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM;
}

// Where the system does not tell, because a server is away, the file counts as being there.
bool is_still_there(int file, const std::filesystem::path& path) {
  struct stat opened {
  }, named{};
  if (::stat(path.c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  return ::fstat(file, &opened) != 0 || (opened.st_ino == named.st_ino && opened.st_dev == named.st_dev);
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& run) : path_(run / kName) {
  bool locked = false;
  do {
    file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file_) throw_user_error("cannot create {}: {}", path_.string(), error_text());
    locked = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EWOULDBLOCK) {
      throw_user_error("{} is being trained by {}; wait for it to end, or give another --out", run.string(),
                       read_holder(file_.get()).text());
    }
    // The owner of the lock may have removed the file between open() and flock().
  } while (locked && !is_still_there(file_.get(), path_));

  const Holder before = read_holder(file_.get()), now = {getpid(), machine_name()};
  // Without flock() a file that a dead process has left behind, and whose number another has got, looks the same.
  if (!locked && before.host == now.host && is_another_process(before.process)) {
    throw_user_error(
        "{} is being trained by {}; wait for it to end, or give another --out; if that process is another "
        "program, remove {}",
        run.string(), before.text(), path_.string());
  }
  if (before.process > 0 && (before.host != now.host || !locked)) {
    spdlog::warn("{}: {} has begun to train it and has not said that it ended; if it still runs, stop one of the two",
                 run.string(), before.text());
  }
  const std::string text = fmt::format("{} {}\n", now.process, now.host);
  const bool told = ::ftruncate(file_.get(), 0) == 0 && ::pwrite(file_.get(), text.data(), text.size(), 0) > 0;
  if (!told) spdlog::debug("{}: cannot be written", path_.string());  // a full disk; the lock holds without the text
}

bool RunLock::holds() const { return is_still_there(file_.get(), path_); }

RunLock::~RunLock() {
  if (holds()) ::unlink(path_.c_str());
}

std::optional<std::string> lock_text(const std::filesystem::path& run) {
  const FileDescriptor file(::open((run / kName).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return std::nullopt;
  std::array<char, 300> bytes{};
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return std::nullopt;
  return std::string(bytes.data(), static_cast<size_t>(got));
}

}  // namespace dgc
