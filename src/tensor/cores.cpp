#include "tensor/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "tensor/control_groups.h"

namespace dgc {

// A part of a core is left out: threads that wait for each other at every barrier would all be as late as the one whose
// time is up.
int machine_cores() {
  const int there = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto limit = processor_limit();
  return limit && *limit < there ? std::max(1, static_cast<int>(*limit)) : there;
}

int usable_cores() {
  cpu_set_t bound;
  const int there = machine_cores();
  return sched_getaffinity(0, sizeof(bound), &bound) == 0 ? std::min(there, CPU_COUNT(&bound)) : there;
}

}  // namespace dgc
