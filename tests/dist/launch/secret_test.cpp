#include "dist/launch/secret.h"

#include <sys/stat.h>

#include <catch.hpp>
#include <fstream>

#include "tensor/errors.h"
#include "tests/dist/meeting/meeting.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

namespace {

// A file of this text and mode, as a secret.
class SecretIn {
 public:
  explicit SecretIn(const std::string& text, mode_t mode = 0600) : path_((directory_.path / "secret").string()) {
    std::ofstream(path_, std::ios::binary) << text;
    chmod(path_.c_str(), mode);
  }
  Secret read() const { return read_secret("DGC_SECRET_FILE", path_); }
  std::string refusal() const {
    try {
      read();
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  }
  const std::string& path() const { return path_; }

 private:
  Directory directory_;
  std::string path_;
};

const std::string kText = "sixteen letters.";

}  // namespace

TEST_CASE("a secret is what a file holds, but for the white space at its end", "[secret]") {
  const Secret one = SecretIn(kText).read();
  CHECK(one.given());
  CHECK(SecretIn(kText + "\n").read().bytes() == one.bytes());
  CHECK(SecretIn(kText + " \t\r\n\n").read().bytes() == one.bytes());
  CHECK(SecretIn("\n" + kText).read().bytes() != one.bytes());
  CHECK(SecretIn(std::string(4096, 'x')).read().given());
  CHECK(SecretIn(kText, 0400).read().bytes() == one.bytes());
  // printf 'sixteen letters.' | sha256sum
  CHECK((one.bytes()[0] == std::byte{0xdd} && one.bytes()[1] == std::byte{0xe5}));
}

TEST_CASE("a file that is no secret is refused, and named", "[secret]") {
  const auto [text, why] = GENERATE(table<std::string, std::string>({
      {"", "it is empty"},
      {" \n\n", "it is empty"},
      {"fifteen letters\n", "it has 15 bytes, and at least 16 are needed"},
      {std::string(4097, 'x'), "it has more than 4096 bytes"},
      {std::string("sixteen") + '\0' + "letters, and more", "it holds a zero byte"},
  }));
  const SecretIn file(text);
  CHECK_THAT(file.refusal(), Contains("DGC_SECRET_FILE=" + file.path() + " is no secret: " + why + "; make one with"));
}

TEST_CASE("a secret that others may read or change is refused", "[secret]") {
  const mode_t mode = GENERATE(0640, 0604, 0620, 0644, 0660, 0777);
  const SecretIn file(kText, mode);
  CHECK_THAT(file.refusal(),
             Contains(fmt::format("is open to others than its owner (mode {:03o}): chmod 600 {}", mode, file.path())));
}

TEST_CASE("a secret that is no file is refused at once", "[secret]") {
  const Directory directory;
  const auto refusal = [&](const std::string& name) {
    try {
      read_secret("DGC_SECRET_FILE", (directory.path / name).string());
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  REQUIRE(mkfifo((directory.path / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(refusal("pipe"), Contains("it is no regular file"));
  CHECK_THAT(refusal("nothing"), Contains("No such file or directory"));
  CHECK_THAT(refusal("."), Contains("it is a directory"));
}

TEST_CASE("secrets that are made differ, and none is the one of a run that has none", "[secret]") {
  CHECK(make_secret().bytes() != make_secret().bytes());
  CHECK(make_secret().bytes() != Secret().bytes());
  CHECK(make_secret().given());
  CHECK_FALSE(Secret().given());
}
