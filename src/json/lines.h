#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// JSON Lines: one flat object per line, as in a run's metrics.jsonl.
namespace dgc {

using RowValue = std::variant<std::nullptr_t, bool, int64_t, double, std::string>;

// One flat object. Its keys are in the order in which they were set, each at most once.
class Row {
 public:
  Row& set(const std::string& key, RowValue value);  // replaces an earlier value, in its place
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, int64_t>) Row& set(const std::string& key, T value) {
    return set(key, RowValue(static_cast<int64_t>(value)));
  }

  const std::vector<std::pair<std::string, RowValue>>& fields() const { return fields_; }
  const RowValue* find(const std::string& key) const;  // null: no such key

  // Empty when the key is missing or its value is of another type. number() takes integers too.
  std::optional<int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;

  bool operator==(const Row&) const = default;

 private:
  std::vector<std::pair<std::string, RowValue>> fields_;
};

// Returns the line without its newline. A double is read back bit for bit, except that NaN and infinity, which JSON
// lacks, become null.
std::string to_json_line(const Row& row);

// Reads one line of JSON. Throws UserError, which begins with `where`, unless it is a flat object.
Row read_json_line(const std::string& line, const std::string& where);
// Reads these keys of a line, whose other keys may hold anything.
Row read_json_line(const std::string& line, const std::string& where, const std::vector<std::string>& keys);

// Reads the rows of a file one after another, so that memory does not grow with the file. A last line that a crash cut
// short or a power cut left without its data is left out: such a line is not JSON, or has NULs. Any other line that is
// not a flat JSON object is a UserError with file and line number, and so is a file that cannot be read.
class JsonLineReader {
 public:
  // Begins with the first line that begins behind the first `skipped` bytes of the file.
  explicit JsonLineReader(const std::string& path, uint64_t skipped = 0);

  std::optional<Row> next();  // nothing: there are no more

  std::string place() const { return place_of(number_); }  // of the row that next() has returned last, in messages

  // The length of the file up to the end of the line whose row next() has returned last, its newline included.
  uint64_t bytes() const { return bytes_; }
  bool ended_with_newline() const { return newline_; }  // that line; a crash may have come before its newline

 private:
  size_t end_of_line();
  bool fill();
  std::string place_of(size_t line) const;

  std::string path_;
  std::ifstream file_;
  std::string buffer_;
  size_t begin_ = 0;   // in buffer_, of the next line
  size_t number_ = 0;  // of lines read
  bool from_start_;
  uint64_t bytes_ = 0;
  bool newline_ = true;
};

// The last of the rows that JsonLineReader would read; nothing: there is none. Of a long file it reads only the end.
std::optional<Row> last_json_row(const std::string& path);

}  // namespace dgc
