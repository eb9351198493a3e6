#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "tests/emulation/execution.h"

namespace dgc::emulation {

struct Launch {
  unsigned grid = 1;
  unsigned block = 32;
  uint64_t seed = 1;  // draws which thread runs next
};

// Runs body(shared) as every thread of a grid. A thread runs until it waits (or meets an atomic, where another may get
// in between); which one is next is drawn from the seed, so the order of threads and blocks is any and can be repeated.
// Every block gets its own shared memory, full of 0xff: NaN as a float.
// Throws what a thread throws, and EmulationError when all that are left wait for something that cannot come.
void emulate_with(const Launch& launch, size_t shared_bytes, const std::function<void(void* shared)>& body);

template <typename Body>
struct SharedOf : SharedOf<decltype(&Body::operator())> {};
template <typename Body, typename Shared>
struct SharedOf<void (Body::*)(Shared&) const> {
  using type = Shared;
};

// emulate({.grid = 3, .block = 64, .seed = 7}, [&](SomeShared& shared) { some_body(args, shared); });
template <typename Body>
void emulate(const Launch& launch, const Body& body) {
  if constexpr (std::is_invocable_v<const Body&>) {
    emulate_with(launch, 0, [&](void*) { body(); });
  } else {
    using Shared = typename SharedOf<Body>::type;
    static_assert(std::is_trivially_default_constructible_v<Shared>, "shared memory starts without a constructor");
    emulate_with(launch, sizeof(Shared), [&](void* shared) { body(*static_cast<Shared*>(shared)); });
  }
}

}  // namespace dgc::emulation

namespace dgc {
using emulation::emulate;
}
