#include <catch.hpp>
#include <cstring>
#include <functional>

#include "tests/kernels/dgc_apply_case.h"
#include "tests/kernels/kernel_backends.h"

// Messages that cannot be used: which fault is reported, and that nothing is applied.
using namespace dgc;
using namespace dgc::test;
using Kind = WireFaultKind;

namespace {

struct Damage {
  const char* name;
  std::function<void(DgcCase&)> damage;
  Kind kind;
  uint64_t found;
};

template <typename T>
void put(DgcCase& c, size_t at, T value) {
  std::memcpy(&c.message[at], &value, sizeof(value));
}

template <typename T>
void put_payload(DgcCase& c, size_t at, T value) {
  put(c, sizeof(WireHeader) + at, value);
  seal(c);
}

const std::vector<Size> kFaultSizes = {{600, 6}, {70000, 200}, {131072, 40}};

std::vector<Damage> damages() {
  return {
      {"magic", [](DgcCase& c) { put(c, 0, uint32_t{7}); }, Kind::magic, 0},
      {"version", [](DgcCase& c) { put(c, 4, uint16_t{9}); }, Kind::version, 9},
      {"a value", [](DgcCase& c) { c.message[sizeof(WireHeader) + c.segments[1].values_at + 5] ^= std::byte{4}; },
       Kind::checksum, 0},
      {"a gap", [](DgcCase& c) { c.message.back() ^= std::byte{128}; }, Kind::checksum, 0},
      {"the step before", [](DgcCase& c) { --c.step, seal(c); }, Kind::stale, 4},
      {"another worker", [](DgcCase& c) { c.header.worker = 77, seal(c); }, Kind::worker, 77},
      {"another value type", [](DgcCase& c) { c.header.values = WireValues::bf16, seal(c); }, Kind::format, 2},
      {"other indices", [](DgcCase& c) { put(c, 7, uint8_t{3}); }, Kind::format, 0x300},
      {"tensors", [](DgcCase& c) { ++c.header.tensors, seal(c); }, Kind::layout, 0},
      {"entries", [](DgcCase& c) { ++c.header.entries, seal(c); }, Kind::layout, 0},
      {"outside the tensor", [](DgcCase& c) { put_payload(c, c.segments[0].offsets_at + 10, uint16_t{600}); },
       Kind::indices, 0},
      {"outside the last block", [](DgcCase& c) { put_payload(c, c.segments[1].offsets_at + 398, uint16_t{4464}); },
       Kind::indices, 1},
      {"twice",
       [](DgcCase& c) {
         uint16_t first = 0;
         std::memcpy(&first, c.payload() + c.segments[1].offsets_at, 2);
         put_payload(c, c.segments[1].offsets_at + 2, first);
       },
       Kind::indices, 1},
      {"too few", [](DgcCase& c) { put_payload(c, c.segments[2].block_ends_at + 4, uint32_t{39}); }, Kind::indices, 2},
      {"backwards", [](DgcCase& c) { put_payload(c, c.segments[2].block_ends_at, uint32_t{41}); }, Kind::indices, 2},
      {"far outside", [](DgcCase& c) { put_payload(c, c.segments[1].block_ends_at, ~uint32_t{0}); }, Kind::indices, 1},
  };
}

}  // namespace

TEST_CASE("a message that cannot be used is named, and nothing is applied", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const ApplyCase good(kFaultSizes, 3);
  for (const Damage& damage : damages()) {
    for (const size_t worker : {size_t{0}, size_t{2}}) {
      CAPTURE(backend->name(), damage.name, worker);
      ApplyCase c = good;
      damage.damage(c.workers[worker]);
      // What is expected is the layout of worker 0 as it was.
      c.workers[0].header = good.workers[0].header;
      apply(*backend, c, {});
      CHECK(c.control.fault.kind == damage.kind);
      CHECK(c.control.fault.worker == worker);
      CHECK(c.control.fault.found == damage.found);
      CHECK(bits_of(c.w) == bits_of(good.w));
      // The next step finds nothing of it left behind.
      ApplyCase next = good;
      apply(*backend, next, {});
      CHECK(next.control.fault.kind == Kind::none);
    }
  }
}

TEST_CASE("of several faults the lowest worker's is reported, and its first kind", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  ApplyCase c(kFaultSizes, 3);
  put(c.workers[2], 0, uint32_t{7});                                                // magic
  put_payload(c.workers[1], c.workers[1].segments[2].block_ends_at, uint32_t{41});  // indices of two tensors ...
  put_payload(c.workers[1], c.workers[1].segments[1].block_ends_at, ~uint32_t{0});
  apply(*backend, c, {});
  CHECK((c.control.fault.kind == Kind::indices && c.control.fault.worker == 1 && c.control.fault.found == 1));

  c.control.fault = {};
  c.workers[1].step = 3;
  seal(c.workers[1]);  // ... and stale
  apply(*backend, c, {});
  CHECK((c.control.fault.kind == Kind::stale && c.control.fault.worker == 1 && c.control.fault.found == 3));
}

TEST_CASE("a message that cannot be used is found among many", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  const ApplyCase good(kFaultSizes, 40);
  for (const size_t worker : {size_t{0}, size_t{17}, size_t{39}}) {
    CAPTURE(worker);
    ApplyCase c = good;
    DgcCase& broken = c.workers[worker];
    put_payload(broken, broken.segments[0].offsets_at + 10, uint16_t{600});
    apply(*backend, c, {});
    CHECK((c.control.fault.kind == Kind::indices && c.control.fault.worker == worker && c.control.fault.found == 0));
    CHECK(bits_of(c.w) == bits_of(good.w));
  }
}
