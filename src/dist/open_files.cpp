#include "dist/open_files.h"

#include <sys/resource.h>

#include "tensor/errors.h"

namespace dgc {

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where the system refuses, the old number holds
}

void require_open_files(int64_t files, int ranks) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (limit.rlim_cur >= static_cast<rlim_t>(files)) return;
  throw_user_error(
      "{} ranks need {} open files on rank 0's machine, and the system allows {}: raise it there (ulimit -Hn, or "
      "nofile "
      "in /etc/security/limits.conf), or set exchange.failure_timeout_s to 0 to do without the heartbeat",
      ranks, files, limit.rlim_cur);
}

}  // namespace dgc
