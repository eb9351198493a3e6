#include "dist/meeting/open_files.h"

#include <sys/resource.h>

#include "dist/meeting/reception.h"
#include "tensor/errors.h"

namespace dgc {

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where the system refuses, the old number holds
}

void require_open_files(int ranks, int receptions) {
  constexpr rlim_t kOthers = 64;
  const rlim_t files = static_cast<rlim_t>(receptions) * (static_cast<rlim_t>(ranks) + kMostStrangers) + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (limit.rlim_cur >= files) return;
  throw_user_error(
      "{} ranks need {} open files on rank 0's machine, and the system allows {}: raise it there (ulimit -Hn, or "
      "nofile in /etc/security/limits.conf), or set exchange.failure_timeout_s to 0 to do without the heartbeat",
      ranks, files, limit.rlim_cur);
}

}  // namespace dgc
