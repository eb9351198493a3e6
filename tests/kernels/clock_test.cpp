// What ran beside what, with numbers worked out by hand.
#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

// The totals after one more step.
OverlapTotals added(Backend& backend, const std::vector<OverlapSpan>& spans, uint64_t waits_from, OverlapTotals to) {
  const ValuesOnDevice<OverlapSpan> on_device(backend, spans);
  const ValuesOnDevice<uint64_t> waits(backend, {waits_from});
  const ValuesOnDevice<OverlapTotals> totals(backend, {to});
  backend.add_overlap_time({.spans = on_device.data(),
                            .count = static_cast<int64_t>(spans.size()),
                            .waits_from = waits.data(),
                            .totals = totals.data()});
  return totals.host()[0];
}

}  // namespace

TEST_CASE("what was done before anybody waited was hidden", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  // Before 100: all 30 of the first, 20 of the second, nothing of the third. The last took no time.
  const OverlapTotals totals =
      added(*backend, {{10, 40}, {80, 130}, {140, 147}, {90, 90}}, 100, {.steps = 4, .nanoseconds = 1000, .hidden = 7});
  CHECK(totals.steps == 5);
  CHECK(totals.nanoseconds == 1000 + 30 + 50 + 7);
  CHECK(totals.hidden == 7 + 30 + 20);
  const OverlapTotals none = added(*backend, {}, 100, {});
  CHECK(none.steps == 1);
  CHECK(none.nanoseconds == 0);
  CHECK(none.hidden == 0);
}

TEST_CASE("the time of many buckets is all of it, and a clock that was set back counts as none", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  const uint64_t start = uint64_t{1} << 60;  // nanoseconds since 1970 are as large
  std::vector<OverlapSpan> spans;
  for (uint64_t i = 0; i < 77; ++i) spans.push_back({start + 10 * i, start + 10 * i + i});
  spans.push_back({start + 20, start + 5});
  const OverlapTotals totals = added(*backend, spans, start + 500, {});
  CHECK(totals.nanoseconds == 77 * 76 / 2);
  CHECK(totals.hidden == 45 * 46 / 2 + 40 + 30 + 20 + 10);  // up to number 45 all had ended by then
}

TEST_CASE("the clock does not go back, and is the same one in a lane", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  const ValuesOnDevice<uint64_t> times(*backend, {0, 0, 0, 0});
  uint64_t* const at = times.data();
  const auto lane = backend->make_lane();
  backend->read_clock(at);
  lane->post([&] { lane->backend().read_clock(at + 1); });
  lane->drain();
  backend->read_clock(at + 2);
  const std::vector<uint64_t> read = times.host();
  CHECK(read[0] > 0);
  CHECK(read[0] <= read[1]);
  CHECK(read[1] <= read[2]);
  CHECK(read[3] == 0);
}
