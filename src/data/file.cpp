#include "data/file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>

#include "tensor/errors.h"
#include "tensor/file_descriptor.h"
#include "tensor/home_advice.h"

namespace dgc {
namespace {

constexpr size_t kLongestLine = size_t{1} << 20;  // a file without line breaks would be read as one line

}  // namespace

// To open a pipe into which nobody writes would wait for ever.
InputFile::InputFile(const std::string& path) : path_(path) {
  if (std::error_code error; std::filesystem::is_fifo(path, error)) {
    throw_user_error("{}: this is a pipe, and data are read from files alone: give a file", path);
  }
  file_ = gzopen(path.c_str(), "rb");
  if (file_ == nullptr) throw_user_error("{}: cannot open it: {}", path, error_text());
  gzbuffer(file_, 1 << 17);
}

InputFile::~InputFile() { gzclose_r(file_); }

size_t InputFile::read(void* to, size_t bytes) {
  constexpr size_t kMost = 1 << 30;  // gzread counts in int
  size_t done = 0;
  errno = 0;
  while (done < bytes) {
    const auto want = static_cast<unsigned>(std::min(bytes - done, kMost));
    const int got = gzread(file_, static_cast<uint8_t*>(to) + done, want);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  int error = Z_OK;
  gzerror(file_, &error);
  if (error == Z_BUF_ERROR) throw_user_error("{}: the gzip file is truncated", path_);
  if (error == Z_ERRNO) throw_user_error("{}: cannot read it: {}", path_, error_text());
  if (error != Z_OK && error != Z_STREAM_END) throw_user_error("{}: the gzip file is corrupt", path_);
  return done;
}

size_t InputFile::append(std::vector<uint8_t>& out, uint64_t bytes) {
  constexpr uint64_t kChunk = 1 << 24;
  const size_t before = out.size();
  while (out.size() - before < bytes) {
    const size_t at = out.size();
    const auto want = static_cast<size_t>(std::min(kChunk, bytes - (at - before)));
    out.resize(at + want);
    const size_t got = read(out.data() + at, want);
    out.resize(at + got);
    if (got < want) break;
  }
  return out.size() - before;
}

// Without O_NONBLOCK, opening a pipe into which nobody writes would wait for ever; with it, such a pipe is an empty
// file. Reading does wait, for what another program writes.
void read_file(const std::string& path, size_t most, std::vector<uint8_t>& out) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw_user_error("{}: cannot open it: {}", path, error_text());
  ::fcntl(file.get(), F_SETFL, O_RDONLY);
  constexpr size_t kChunk = 1 << 18;
  size_t size = 0;
  while (true) {
    out.resize(size + kChunk);
    const std::optional<size_t> got = read_all(file, std::as_writable_bytes(std::span(out).subspan(size)));
    if (!got) throw_user_error("{}: cannot read it: {}", path, error_text());
    size += *got;
    if (size > most) throw_user_error("{}: longer than the {} MiB that such a file may have", path, most >> 20);
    if (*got < kChunk) break;
  }
  out.resize(size);
}

bool is_there(const std::string& path) {
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  if (error) throw_user_error("{}: {}", path, error.message());
  return there;
}

bool is_folder(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  const bool folder = entry.is_directory(error);
  if (error) throw_user_error("{}: {}; mend that link, or remove it", entry.path().string(), error.message());
  return folder;
}

std::vector<std::string> names_in(const std::string& folder,
                                  const std::function<bool(const std::filesystem::directory_entry&)>& wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (wanted(*it)) names.push_back(it->path().filename().string());
  }
  if (error) throw_user_error("{}: cannot list the folder: {}", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void require_folder(const std::string& path, const std::string& fix) {
  if (!is_there(path)) throw_user_error("{}: there is no such folder; {}{}", path, home_advice(path), fix);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) throw_user_error("{}: this is a file, and no folder; {}", path, fix);
}

void for_each_line(const std::string& path, const std::string& fix,
                   const std::function<void(const std::string& line, const std::string& where)>& line) {
  if (!is_there(path)) throw_user_error("{}: there is no such file; {}{}", path, home_advice(path), fix);
  if (std::error_code error; std::filesystem::is_directory(path, error))
    throw_user_error("{}: this is a folder; {}", path, fix);
  InputFile file(path);
  std::string rest(1 << 16, '\0'), text;
  size_t number = 0;
  const auto hand_out = [&](std::string found) {
    if (number == 0 && found.starts_with(kByteOrderMark)) found.erase(0, kByteOrderMark.size());
    if (!found.empty() && found.back() == '\r') found.pop_back();
    const std::string where = fmt::format("{}: line {}", path, ++number);
    if (found.find('\0') != std::string::npos) {
      throw_user_error("{} has a NUL byte, so it is no UTF-8 text; convert it to UTF-8", where);
    }
    line(found, where);
  };
  while (const size_t got = file.read(rest.data(), rest.size())) {
    text.append(rest, 0, got);
    size_t start = 0;
    for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
      hand_out(text.substr(start, end - start));
    }
    text.erase(0, start);
    if (text.size() > kLongestLine) {
      throw_user_error("{}: line {} is longer than {} MiB, and so this is no such list; {}", path, number + 1,
                       kLongestLine >> 20, fix);
    }
  }
  if (!text.empty()) hand_out(text);
}

}  // namespace dgc
