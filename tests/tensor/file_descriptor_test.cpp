#include "tensor/file_descriptor.h"

#include <fcntl.h>

#include <catch.hpp>
#include <utility>

namespace dgc {
namespace {

int opened() { return ::open("/dev/null", O_WRONLY | O_CLOEXEC); }
bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

}  // namespace

TEST_CASE("a file descriptor is closed once, with its last owner") {
  const int first = opened(), second = opened();
  REQUIRE((first >= 0 && second >= 0));
  {
    FileDescriptor owner(first);
    FileDescriptor next(std::move(owner));
    CHECK(next.get() == first);
    next = FileDescriptor(second);
    CHECK_FALSE(is_open(first));
    CHECK(is_open(second));
  }
  CHECK_FALSE(is_open(second));

  FileDescriptor closed(opened());
  CHECK(closed);
  CHECK(closed.close() == 0);
  CHECK_FALSE(closed);
  CHECK_FALSE(FileDescriptor());
}

}  // namespace dgc
