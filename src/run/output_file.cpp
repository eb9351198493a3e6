#include "run/output_file.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tensor/errors.h"

namespace dgc {

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!file_) {
    throw_user_error("{}: cannot be opened for writing: {}", path_.string(), error_text());
  }
}

OutputFile::~OutputFile() {
  const uint64_t lost = waiting_bytes_ + dropped_;
  if (lost > 0) spdlog::warn("{}: its last {} bytes could not be written", path_.string(), lost);
}

void OutputFile::cut(uint64_t bytes) {
  struct stat status {};
  const auto length = static_cast<off_t>(bytes);
  const bool known = ::fstat(file_.get(), &status) == 0;
  if (known && status.st_size <= length) return;
  if (!known || ::ftruncate(file_.get(), length) != 0) {
    throw_user_error("{}: cannot be cut: {}", path_.string(), error_text());
  }
}

void OutputFile::append(std::string_view record) {
  if (waiting_bytes_ + record.size() > kMostWaiting) {
    dropped_ += record.size();
  } else {
    waiting_.emplace_back(record);
    waiting_bytes_ += record.size();
  }
  write();
}

// What goes into a file that has lost its last name is lost.
void OutputFile::follow_name() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || status.st_nlink > 0) return;
  FileDescriptor named(
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666));
  const std::string why = named ? "" : errno == ELOOP ? ": it is a link" : ": " + error_text();
  if (!named || ::fstat(named.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    if (!nameless_) {
      spdlog::warn(
          "{}: another program has removed or replaced it, and no file can be written there{}; what is written "
          "is lost until one can",
          path_.string(), why);
    }
    nameless_ = true;
    return;
  }
  nameless_ = false;
  spdlog::warn(
      "{}: another program has removed or replaced it; what was written since is lost, and what follows goes "
      "into the file that is there now",
      path_.string());
  file_ = std::move(named);
}

// A network file system, or one with quotas, may refuse here what it took before. Then it has forgotten it.
void OutputFile::sync() {
  if (::fdatasync(file_.get()) == 0 || errno == EINVAL || loses_) return;  // EINVAL: no file that can be synced
  spdlog::warn("{}: what was written last may be lost: {}; the run goes on", path_.string(), error_text());
  loses_ = true;
}

// A full disk may take a part of a record. Where the file was emptied before the rest is written, it would begin with
// that rest, so the part is taken back.
bool OutputFile::write(const std::string& record) const {
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t written = ::write(file_.get(), record.data() + done, record.size() - done);
    if (written > 0) done += static_cast<size_t>(written);
    if (written >= 0 || errno == EINTR) continue;
    const int why = errno;
    struct stat status {};
    if (done > 0 && ::fstat(file_.get(), &status) == 0) {
      static_cast<void>(!::ftruncate(file_.get(), status.st_size - static_cast<off_t>(done)));
    }
    errno = why;
    return false;
  }
  return true;
}

void OutputFile::write() {
  for (; !waiting_.empty(); waiting_.pop_front()) {
    if (!write(waiting_.front())) {
      if (!failing_) {
        spdlog::warn("{}: cannot be written: {}; the run goes on, and what belongs there is tried again later",
                     path_.string(), error_text());
      }
      failing_ = true;
      return;
    }
    waiting_bytes_ -= waiting_.front().size();
  }
  if (failing_) spdlog::info("{}: can be written again", path_.string());
  failing_ = false;
}

}  // namespace dgc
