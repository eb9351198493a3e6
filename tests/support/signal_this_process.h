#pragma once

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "train/ranks/interrupt.h"

namespace dgc::test {

// Sends this process a signal, as others would, and waits until its InterruptGuard has noted it.
inline void signal_this_process(int signal) {
  kill(getpid(), signal);
  while (!interrupted()) std::this_thread::yield();
}

}  // namespace dgc::test
