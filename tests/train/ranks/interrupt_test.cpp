#include "train/ranks/interrupt.h"

#include <pthread.h>
#include <signal.h>

#include <catch.hpp>
#include <chrono>
#include <thread>

#include "tests/kernels/on_device.h"

using namespace dgc;

// oneDNN's stack pointer is in the heap meanwhile.
TEST_CASE("a signal in the middle of a matrix product overwrites nothing") {
  const auto backend = make_cpu_backend(1);
  const LinearArgs args{.batch = 64, .in = 128, .out = 10};
  const OnDevice x(*backend, random_floats(args.batch * args.in, 1)), w(*backend, random_floats(args.out * args.in, 2));
  const OnDevice y(*backend, random_floats(args.batch * args.out, 3));
  backend->linear_forward(args, x, w, {}, y);
  const auto truth = y.host();
  int wrong = 0;
  for (int round = 0; round < 100; ++round) {
    const InterruptGuard guard;
    const std::jthread sender([round, computes = pthread_self()] {
      std::this_thread::sleep_for(std::chrono::microseconds(7 * round));
      pthread_kill(computes, SIGUSR1);
    });
    while (!interrupted()) {
      backend->linear_forward(args, x, w, {}, y);
      if (y.host() != truth) ++wrong;
    }
  }
  CHECK(wrong == 0);
}
