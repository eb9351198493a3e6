#include "run/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <chrono>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr const char* kTemporary = ".new-";  // how the name of a FileWriter's temporary file begins

[[noreturn]] void throw_system(const char* action, const std::filesystem::path& path) {
  throw_user_error("cannot {} {}: {}", action, path.string(), error_text());
}

// EINVAL: a pipe or a device has nothing to sync, and some file systems sync no folders.
void sync(const FileDescriptor& file, const std::filesystem::path& path) {
  if (::fsync(file.get()) != 0 && errno != EINVAL) throw_system("sync", path);
}

bool is_standard_output(const struct stat& file) {
  struct stat out {};
  return ::fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

// Follows links even when the last target does not exist yet.
std::filesystem::path behind_links(std::filesystem::path path) {
  std::error_code no_link;
  while (true) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
    if (no_link) return path;
    path = path.parent_path() / target;
  }
}

}  // namespace

std::string xxh64_hex(std::string_view bytes) { return fmt::format("{:016x}", XXH64(bytes.data(), bytes.size(), 0)); }

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)) {
  struct stat old {};
  const bool exists = ::stat(path_.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) throw_system("create", path_);  // for example a link that leads to itself
  if (exists && is_standard_output(old)) {
    file_ = FileDescriptor(::dup(STDOUT_FILENO));  // a new open() would overwrite what is printed
  } else if (exists && !S_ISREG(old.st_mode)) {
    file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    if (exists && ::access(path_.c_str(), W_OK) != 0) throw_system("write", path_);
    place_ = behind_links(path_);
    open_beside();
  }
  if (!file_) throw_system("create", path_);
  if (exists && !beside_.empty()) {
    [[maybe_unused]] const int only_root_may = ::fchown(file_.get(), old.st_uid, old.st_gid);
    ::fchmod(file_.get(), old.st_mode & 0777);
  }
  hash_ = XXH64_createState();
  XXH64_reset(hash_, 0);
}

// The name is short, so that it fits wherever the file's own does, and random, as ranks on several machines may write
// into one folder.
void FileWriter::open_beside() {
  std::random_device random;
  do {
    beside_ = place_.parent_path() / fmt::format("{}{:08x}", kTemporary, random());
    file_ = FileDescriptor(::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file_ && errno == EEXIST);
}

FileWriter::~FileWriter() {
  if (!beside_.empty()) ::unlink(beside_.c_str());
  XXH64_freeState(hash_);
}

void FileWriter::write(const void* data, size_t bytes) {
  XXH64_update(hash_, data, bytes);
  bytes_ += bytes;
  if (!write_all(file_, {static_cast<const std::byte*>(data), bytes})) throw_system("write", path_);
}

FileWriter::Written FileWriter::finish() {
  sync(file_, path_);
  if (file_.close() != 0) throw_system("close", path_);
  if (!beside_.empty() && ::rename(beside_.c_str(), place_.c_str()) != 0) throw_system("replace", path_);
  beside_.clear();
  return {bytes_, fmt::format("{:016x}", XXH64_digest(hash_))};
}

void require_writable(const std::filesystem::path& path) {
  std::error_code unknown;
  if (std::filesystem::is_fifo(path, unknown) || std::filesystem::is_character_file(path, unknown)) return;
  const FileWriter tried(path);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  FileWriter file(path);
  file.write(text.data(), text.size());
  file.finish();
}

void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  std::error_code unknown;
  const bool same = std::filesystem::file_size(path, unknown) == text.size() && !unknown && read_file(path) == text;
  if (!same) write_file(path, text);
}

void remove_abandoned(const std::filesystem::path& folder) {
  const auto recent = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1);
  std::error_code error;
  std::vector<std::filesystem::path> abandoned;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const bool temporary = entry.path().filename().string().starts_with(kTemporary);
    if (temporary && entry.is_regular_file(error) && entry.last_write_time(error) < recent && !error) {
      abandoned.push_back(entry.path());
    }
  }
  for (const auto& file : abandoned) std::filesystem::remove(file, error);
}

void sync_directory(const std::filesystem::path& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) throw_system("open", path);
  sync(directory, path);
}

std::string read_file(const std::filesystem::path& path, uint64_t most) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // does not wait for a pipe
  if (!file) throw_system("read", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_system("read", path);
  if (!S_ISREG(status.st_mode)) throw_user_error("cannot read {}: it is no regular file", path.string());
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > most) {
    throw_user_error("cannot read {}: it has {} bytes, more than the {} that such a file may have", path.string(), size,
                     most);
  }

  std::string bytes(static_cast<size_t>(size), '\0');
  const std::optional<size_t> filled = read_all(file, std::as_writable_bytes(std::span(bytes)));
  if (!filled) throw_system("read", path);
  bytes.resize(*filled);  // the file may have become shorter meanwhile
  return bytes;
}

bool is_broken_link(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_symlink(path, error) && !std::filesystem::exists(path, error);
}

void refuse_broken_link(const std::filesystem::path& path) {
  if (!is_broken_link(path)) return;
  std::error_code error;
  throw_user_error("{} is a link to {}, which is not there", path.string(),
                   std::filesystem::read_symlink(path, error).string());
}

void make_directory(const std::filesystem::path& path) {
  refuse_broken_link(path);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw_user_error("cannot create {}: {}", path.string(), error.message());
}

}  // namespace dgc
