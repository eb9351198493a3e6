#include "tests/emulation/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "tensor/errors.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace dgc::emulation {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;  // touched lazily: sanitized frames are large

#if defined(__x86_64__)

// Only what a call must preserve: swapcontext makes a system call every time, and emulated warps switch all the time.
using Context = void**;  // the stack, with the registers on top

extern "C" void dgc_switch_context(Context* from, Context to);
asm(R"(
.text
.type dgc_switch_context, @function
dgc_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size dgc_switch_context, .-dgc_switch_context
)");

void switch_context(Context& from, const Context& to) { dgc_switch_context(&from, to); }

void make_context(Context& context, void* stack, void (*function)()) {
  // Stacks that all began at the same place of a page would fight for the same lines of the cache.
  const size_t shift = reinterpret_cast<uintptr_t>(stack) / kStackBytes % 61 * 1040;
  context = static_cast<void**>(stack) + (kStackBytes - shift) / sizeof(void*) - 4;  // aligned to 16, as by a call
  *context = reinterpret_cast<void*>(function);  // where `ret` goes, past six registers
  context -= 6;
}

#else

using Context = ucontext_t;

void switch_context(Context& from, const Context& to) { swapcontext(&from, &to); }

void make_context(Context& context, void* stack, void (*function)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, function, 0);
}

#endif

// Stacks that no fiber has. A thread's fibers end with it, and another thread's first ones get stacks whose pages are
// there already: the fake CUDA starts many threads.
class Stacks {
 public:
  void* take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        void* const stack = idle_.back();
        idle_.pop_back();
        return stack;
      }
    }
    void* stack =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) throw std::bad_alloc();
    mprotect(stack, static_cast<size_t>(getpagesize()), PROT_NONE);  // a stack that is too deep faults at once
    return stack;
  }
  void give_back(void* stack) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(stack);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> idle_;
};

// It is never destroyed, because a thread that some static object ends may still give its fibers back.
Stacks& stacks() {
  static auto& all = *new Stacks;
  return all;
}

}  // namespace

struct Fiber::State {
  Context own{};
  void* stack = nullptr;
  std::function<void()> function;
  bool returned = true;
  void* own_shadow = nullptr;  // what a sanitizer keeps of the stack while another is in use

  void switch_in();
  void switch_out();
  void switch_to(State& other);
  void arrived();
};

namespace {

thread_local Fiber* current = nullptr;

// The stack outside of all fibers. The sanitizers must be told of every switch, or they take the other stack for a
// corrupted one.
struct Outside {
  Context context{};
  void* shadow = nullptr;
  const void* stack = nullptr;
  size_t bytes = 0;
};
thread_local Outside outside;

}  // namespace

#if defined(__SANITIZE_ADDRESS__)

// Since GCC 13 the address sanitizer gives every stack a second one, to find the use of variables after a return. For
// thousands of fibers these take tens of GiB.
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }

void Fiber::State::switch_in() {
  outside.stack = nullptr;
  __sanitizer_start_switch_fiber(&outside.shadow, stack, kStackBytes);
  switch_context(outside.context, own);
  __sanitizer_finish_switch_fiber(outside.shadow, nullptr, nullptr);
}
void Fiber::State::switch_out() {
  __sanitizer_start_switch_fiber(&own_shadow, outside.stack, outside.bytes);
  switch_context(own, outside.context);
  arrived();
}
void Fiber::State::switch_to(State& other) {
  __sanitizer_start_switch_fiber(&own_shadow, other.stack, kStackBytes);
  switch_context(own, other.own);
  arrived();
}
void Fiber::State::arrived() {
  const void* from = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(own_shadow, &from, &bytes);
  if (outside.stack != nullptr) return;  // the switch came from another fiber
  outside.stack = from;
  outside.bytes = bytes;
}

#elif defined(__SANITIZE_THREAD__)

void Fiber::State::switch_in() {
  if (own_shadow == nullptr) own_shadow = __tsan_create_fiber(0);
  outside.shadow = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_shadow, 0);
  switch_context(outside.context, own);
}
void Fiber::State::switch_out() {
  __tsan_switch_to_fiber(outside.shadow, 0);
  switch_context(own, outside.context);
}
void Fiber::State::switch_to(State& other) {
  if (other.own_shadow == nullptr) other.own_shadow = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(other.own_shadow, 0);
  switch_context(own, other.own);
}
void Fiber::State::arrived() {}

#else

void Fiber::State::switch_in() { switch_context(outside.context, own); }
void Fiber::State::switch_out() { switch_context(own, outside.context); }
void Fiber::State::switch_to(State& other) { switch_context(own, other.own); }
void Fiber::State::arrived() {}

#endif

Fiber::Fiber() : state_(std::make_unique<State>()) {
  state_->stack = stacks().take();
  make_context(state_->own, state_->stack, &Fiber::enter);
}

Fiber::~Fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(state_->stack, kStackBytes);
#elif defined(__SANITIZE_THREAD__)
  if (state_->own_shadow != nullptr) __tsan_destroy_fiber(state_->own_shadow);
#endif
  stacks().give_back(state_->stack);
}

void Fiber::start(std::function<void()> function) {
  DGC_CHECK(state_->returned, "the fiber is in use");
  state_->function = std::move(function);
  state_->returned = false;
}

void Fiber::resume() {
  current = this;
  state_->switch_in();
  current = nullptr;
}

void Fiber::suspend() { current->state_->switch_out(); }

void Fiber::hand_over(Fiber& to) {
  State& from = *current->state_;
  current = &to;
  from.switch_to(*to.state_);
}

// Never returns: a fiber whose function is done waits for the next one.
void Fiber::enter() {
  State& state = *current->state_;
  state.arrived();
  for (;;) {
    state.function();
    state.returned = true;
    state.switch_out();
  }
}

}  // namespace dgc::emulation
