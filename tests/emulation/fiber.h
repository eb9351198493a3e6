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
  bool resume();                               // until it suspends or returns; whether it has returned
  static void suspend();                       // called by the function that runs

 private:
  struct State;
  static void enter();
  std::unique_ptr<State> state_;
};

}  // namespace dgc::emulation
