#include "commands/short_spins.h"

#include <unistd.h>

#include <cstdlib>

namespace dgc {

void restart_with_short_spins(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  execv("/proc/self/exe", argv);  // where that is not possible, all goes on as it is
}

}  // namespace dgc
