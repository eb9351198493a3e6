#include "dist/meeting/open_files.h"

#include <sys/resource.h>

#include <catch.hpp>

#include "tensor/errors.h"

using namespace dgc;

namespace {

// The number of files that this process may have open, as it was, at the end of a scope.
class OpenFilesLimit {
 public:
  OpenFilesLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;

  rlim_t most() const { return before_.rlim_max; }
  static rlim_t now() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  void lower_to(rlim_t files) const {
    const rlimit limit{files, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("open files: a process takes as many as it may choose by itself", "[open_files]") {
  const OpenFilesLimit limit;
  limit.lower_to(64);
  raise_open_files();
  CHECK(OpenFilesLimit::now() == limit.most());
}

TEST_CASE("open files: too few for the heartbeat is one sentence", "[open_files]") {
  const OpenFilesLimit limit;
  limit.lower_to(210);
  CHECK_NOTHROW(require_open_files(82, 1));
  CHECK_NOTHROW(require_open_files(9, 2));
  CHECK_THROWS_WITH(
      require_open_files(10, 2),
      "10 ranks need 212 open files on rank 0's machine, and the system allows 210: raise it there (ulimit "
      "-Hn, or nofile in /etc/security/limits.conf), or set exchange.failure_timeout_s to 0 to do without "
      "the heartbeat");
}
