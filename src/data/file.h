#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dgc {

// A file read from the start, unpacked on the way when it is a gzip file. All errors are UserErrors that name the file.
// Pipes are refused.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // Reads up to `bytes` bytes; fewer only at the end of the file. Throws when a gzip file is cut off or corrupt.
  size_t read(void* to, size_t bytes);
  // Appends up to `bytes` bytes to `out`. Memory grows with what is really there, whatever a header promises.
  size_t append(std::vector<uint8_t>& out, uint64_t bytes);

 private:
  std::string path_;
  gzFile file_ = nullptr;
};

// Reads the whole file as it is into `out`, whose memory is used again. Throws UserError that names the file when it
// cannot be read, or has more than `most` bytes, without reading on, because a file may have no end.
void read_file(const std::string& path, size_t most, std::vector<uint8_t>& out);

// Whether the file exists. Throws UserError if the system does not tell, because a folder on the way is closed to this
// user or a name is too long.
bool is_there(const std::string& path);
// Whether an entry, or what it links to, is a folder. Throws UserError for a link that leads nowhere.
bool is_folder(const std::filesystem::directory_entry& entry);

// The names of a folder's wanted entries, sorted by bytes so that the order does not depend on the file system or the
// locale. Throws UserError that names the folder when it cannot be listed.
std::vector<std::string> names_in(const std::string& folder,
                                  const std::function<bool(const std::filesystem::directory_entry&)>& wanted);

// Throws UserError with `fix` ("run data/cifar10 to get it") unless path is a folder.
void require_folder(const std::string& path, const std::string& fix);

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // which may begin a text, and is no part of it

// Calls `line` for every line of a text file (also a gzip file) without its line break, and with where = "PATH: line
// N". Throws as InputFile does, and UserError with `fix` when there is no such file or one of its lines is longer than
// 1 MiB, and for a line with a NUL byte, as UTF-16 has them.
void for_each_line(const std::string& path, const std::string& fix,
                   const std::function<void(const std::string& line, const std::string& where)>& line);

}  // namespace dgc
