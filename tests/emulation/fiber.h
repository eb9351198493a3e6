#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace dgc::emulation {

// A stack of its own on which functions run until they suspend. It belongs to the thread that made it. One that is
// destroyed while its function is suspended is forgotten without unwinding.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void start(std::function<void()> function);  // which must not throw; the one before it has returned

  // Called outside of all fibers of the thread: until this fiber, or one that it has handed over to, suspends or
  // returns.
  void resume();

  // Called by the function that runs: the caller of resume() goes on, or another fiber, whose function has not
  // returned.
  static void suspend();
  static void hand_over(Fiber& to);

 private:
  struct State;
  static void enter();
  std::unique_ptr<State> state_;
};

}  // namespace dgc::emulation
