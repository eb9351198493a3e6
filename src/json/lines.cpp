#include "json/lines.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "json/rows.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

template <class T>
std::optional<T> as(const RowValue* value) {
  const T* typed = value ? std::get_if<T>(value) : nullptr;
  return typed ? std::optional<T>(*typed) : std::nullopt;
}

// A cut object is never JSON: only its last byte closes it. A power cut leaves NULs, which end JSON for the parser.
bool is_torn(const std::string& line) { return line.find('\0') != std::string::npos || !Json::accept(line); }

}  // namespace

Row& Row::set(const std::string& key, RowValue value) {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field.first == key; });
  if (at == fields_.end()) {
    fields_.emplace_back(key, std::move(value));
  } else {
    at->second = std::move(value);
  }
  return *this;
}

const RowValue* Row::find(const std::string& key) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field.first == key; });
  return at == fields_.end() ? nullptr : &at->second;
}

std::optional<int64_t> Row::integer(const std::string& key) const { return as<int64_t>(find(key)); }
std::optional<bool> Row::boolean(const std::string& key) const { return as<bool>(find(key)); }
std::optional<std::string> Row::text(const std::string& key) const { return as<std::string>(find(key)); }

std::optional<double> Row::number(const std::string& key) const {
  if (const auto whole = integer(key)) return static_cast<double>(*whole);
  return as<double>(find(key));
}

std::string to_json_line(const Row& row) { return json_text(row_to_json(row)); }

Row read_json_line(const std::string& line, const std::string& where) {
  return row_from_json(parse_json_line(line, where), where);
}

Row read_json_line(const std::string& line, const std::string& where, const std::vector<std::string>& keys) {
  const Json all = parse_json_line(line, where);
  if (!all.is_object()) return row_from_json(all, where);  // which says so
  Json wanted = Json::object();
  for (const std::string& key : keys) {
    if (const auto found = all.find(key); found != all.end()) wanted[key] = *found;
  }
  return row_from_json(wanted, where);
}

JsonLineReader::JsonLineReader(const std::string& path, uint64_t skipped)
    : path_(path), file_(open_to_read(path)), from_start_(skipped == 0) {
  if (from_start_) return;
  file_.seekg(static_cast<std::streamoff>(skipped) - 1);
  const size_t newline = end_of_line();
  begin_ = std::min(newline + 1, buffer_.size());
  bytes_ = skipped - 1 + begin_;
}

std::string JsonLineReader::place_of(size_t line) const {
  return from_start_ ? fmt::format("{}: line {}", path_, line) : fmt::format("{}: a line near its end", path_);
}

std::optional<Row> JsonLineReader::next() {
  const size_t end = end_of_line();
  if (begin_ == buffer_.size()) return std::nullopt;
  const bool newline = end < buffer_.size();
  const std::string line = buffer_.substr(begin_, end - begin_);
  begin_ = newline ? end + 1 : end;
  const bool last = begin_ == buffer_.size() && !fill();
  ++number_;
  if (last && is_torn(line)) return std::nullopt;
  bytes_ += line.size() + (newline ? 1 : 0);
  newline_ = newline;
  return read_json_line(line, place());
}

// Returns the place in buffer_ of the next line's newline; the end of buffer_ if the file ends without one.
size_t JsonLineReader::end_of_line() {
  for (size_t looked_at = begin_;;) {
    const size_t newline = buffer_.find('\n', looked_at);
    if (newline != std::string::npos) return newline;
    looked_at = buffer_.size() - begin_;  // fill() moves the line to the front
    if (!fill()) return buffer_.size();
  }
}

// Reads on behind what is left in buffer_. False: the file is at its end. A pipe or a device may have no end, so what
// is left may not become too long.
bool JsonLineReader::fill() {
  constexpr size_t kChunk = size_t{1} << 16, kMost = size_t{1} << 26;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t left = buffer_.size();
  if (left > kMost) {
    throw_user_error("{}: longer than the {} MiB that a line may have", place_of(number_ + 1), kMost >> 20);
  }
  buffer_.resize(left + kChunk);
  file_.read(buffer_.data() + left, kChunk);
  if (file_.bad()) throw_user_error("{}: cannot read this file", path_);
  buffer_.resize(left + static_cast<size_t>(file_.gcount()));
  return buffer_.size() > left;
}

std::optional<Row> last_json_row(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) throw_user_error("{}: cannot read this file: {}", path, error.message());
  constexpr uint64_t kFirst = uint64_t{1} << 16;
  for (uint64_t tail = kFirst;; tail *= 16) {
    const uint64_t skipped = size > tail ? size - tail : 0;
    JsonLineReader lines(path, skipped);
    std::optional<Row> last;
    while (std::optional<Row> row = lines.next()) last = std::move(row);
    if (last || skipped == 0) return last;
  }
}

}  // namespace dgc
