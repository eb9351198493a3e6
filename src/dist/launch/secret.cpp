#include "dist/launch/secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tensor/errors.h"
#include "tensor/file_descriptor.h"

namespace dgc {
namespace {

constexpr size_t kFewestBytes = 16, kMostBytes = 4096;

// What a file holds, wiped in the end.
struct SecretText {
  std::array<unsigned char, kMostBytes + 1> bytes{};
  size_t size = 0;

  SecretText() = default;
  ~SecretText() { sodium_memzero(bytes.data(), bytes.size()); }
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;

  bool fill_from(const FileDescriptor& file) {
    const std::optional<size_t> got = read_all(file, std::as_writable_bytes(std::span(bytes)));
    size = got.value_or(0);
    return got.has_value();
  }
  void trim() {
    const auto blank = [](unsigned char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (size > 0 && blank(bytes[size - 1])) --size;
  }
};

// Why the text is no secret; empty: it is one.
std::string flaw_of(const SecretText& text) {
  if (text.size == 0) return "it is empty";
  if (text.size > kMostBytes) return fmt::format("it has more than {} bytes", kMostBytes);
  if (text.size < kFewestBytes)
    return fmt::format("it has {} bytes, and at least {} are needed", text.size, kFewestBytes);
  const auto* const end = text.bytes.data() + text.size;
  if (std::find(text.bytes.data(), end, 0) != end) return "it holds a zero byte";
  return "";
}

}  // namespace

Secret::~Secret() { sodium_memzero(bytes_.data(), bytes_.size()); }

Secret make_secret() {
  DGC_CHECK(sodium_init() >= 0, "libsodium starts");
  Secret::Bytes bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return Secret(bytes);
}

Secret read_secret(const std::string& variable, const std::string& path) {
  DGC_CHECK(sodium_init() >= 0, "libsodium starts");
  const auto refuse = [&](const std::string& why) {
    throw_user_error("{}={} is no secret: {}; make one with {}, and give every machine a copy", variable, path, why,
                     kHowToMakeSecret);
  };
  // Does not wait for the writer of a named pipe.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // Somebody may have put the secret itself into the variable, and no log should have it.
  if (!file) {
    throw_user_error(
        "{} names a file that cannot be opened: {}; it has to be the path of a file with the secret: make one with {}, "
        "and give every machine a copy",
        variable, error_text(), kHowToMakeSecret);
  }
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) refuse(error_text());
  if (S_ISDIR(facts.st_mode)) refuse("it is a directory");
  if (!S_ISREG(facts.st_mode)) refuse("it is no regular file");
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw_user_error("{}={} is open to others than its owner (mode {:03o}): chmod 600 {}", variable, path,
                     facts.st_mode & 0777U, path);
  }
  SecretText text;
  if (!text.fill_from(file)) refuse(error_text());
  text.trim();
  if (const std::string flaw = flaw_of(text); !flaw.empty()) refuse(flaw);
  Secret::Bytes bytes;
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(bytes.data()), text.bytes.data(), text.size);
  return Secret(bytes);
}

}  // namespace dgc
