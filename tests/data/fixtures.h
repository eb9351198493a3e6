#pragma once

#include <zlib.h>

#include <catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tensor/errors.h"
#include "tests/support/new_folder.h"

// Hand-made files for the readers.
namespace dgc {

using Bytes = std::vector<uint8_t>;

// An empty folder of its own, removed at the end.
class TempFolder {
 public:
  TempFolder() : path_(test::new_folder("dgc_data").string()) {}
  ~TempFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const Bytes& bytes) const {
    const std::string path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return path;
  }

 private:
  std::string path_;
};

inline Bytes bytes_of_text(const std::string& text) { return {text.begin(), text.end()}; }

inline Bytes idx_bytes(const std::vector<uint32_t>& header, const Bytes& data) {
  Bytes out;
  for (const uint32_t word : header) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(word >> shift));
  }
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

inline Bytes counting(size_t n, int first = 0) {
  Bytes out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(static_cast<size_t>(first) + i);
  return out;
}

inline Bytes gzip(const Bytes& data) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes out(deflateBound(&stream, data.size()) + 32);
  stream.next_in = const_cast<Bytef*>(data.data());
  stream.avail_in = static_cast<unsigned>(data.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<unsigned>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// What the UserError of f says; fails when f throws none.
template <typename F>
std::string user_error(const F& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  FAIL("no UserError");
  return {};
}

}  // namespace dgc
