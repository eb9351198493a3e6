#include <catch.hpp>

#include "tests/kernels/dgc_apply_case.h"
#include "tests/kernels/kernel_backends.h"

// What is sent, summed on its way as dense numbers: dgc_scatter and dgc_step against dgc_apply's definition.
using namespace dgc;
using namespace dgc::test;

namespace {

const std::vector<Size> kTransportSizes = {{1, 1}, {17, 5}, {65537, 700}, {4099, 40}, {513, 513}};

// Each worker's message as an arena that held kSentinel.
std::vector<std::vector<float>> scatter(Backend& backend, ApplyCase& c) {
  std::vector<std::vector<float>> arenas;
  std::vector<StepControl> controls{c.control};
  const Copy control(backend, controls);
  const DgcTableMemory table = table_of(backend, c.workers[0].segments);
  for (DgcCase& worker : c.workers) {
    std::vector<float> arena(c.sum.size(), kSentinel);
    const Copy message(backend, worker.message);
    const Copy dense(backend, arena);
    DgcScatterArgs args;
    args.table = table.table();
    args.control = control.data();
    args.message = message.data();
    args.dense = dense.data();
    backend.dgc_scatter(args);
    dense.fetch();
    arenas.push_back(arena);
  }
  return arenas;
}

// In worker order, by Backend::ordered_sum.
std::vector<float> sum_of(Backend& backend, std::vector<std::vector<float>>& arenas) {
  std::vector<Copy<float>> rows;
  rows.reserve(arenas.size());
  std::vector<const float*> pointers;
  for (auto& arena : arenas) pointers.push_back(rows.emplace_back(backend, arena).data());
  std::vector<float> sum(arenas[0].size());
  const Copy out(backend, sum);
  backend.ordered_sum(pointers, out.data(), static_cast<int64_t>(sum.size()));
  out.fetch();
  return sum;
}

// Returns what is left of the sum.
std::vector<float> step(Backend& backend, ApplyCase& c, std::vector<float> sum, DgcStepArgs rule) {
  std::vector<StepControl> controls{c.control};
  const DgcTableMemory table = table_of(backend, c.workers[0].segments);
  const Copy control(backend, controls);
  const Copy g(backend, sum), m(backend, c.m), w(backend, c.w), dense_sum(backend, c.dense_sum);
  const Copy ranges(backend, c.ranges);
  rule.table = table.table();
  rule.control = control.data();
  rule.sum = g.data();
  rule.m = m.data();
  rule.w = w.data();
  rule.dense = {ranges.data(), static_cast<int32_t>(c.ranges.size()), static_cast<int64_t>(c.dense_sum.size())};
  rule.dense_sum = dense_sum.data();
  backend.dgc_step(rule);
  m.fetch(), w.fetch(), g.fetch();
  return sum;
}

}  // namespace

TEST_CASE("dgc_scatter writes what was sent and zeros, and leaves gaps alone", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  ApplyCase c(kTransportSizes, 1);
  auto arenas = scatter(*backend, c);
  std::vector<float> want(c.sum.size(), kSentinel);
  const std::vector<float> sent = c.expected_sum();
  for (const DgcSegment& s : c.workers[0].segments) {
    std::copy_n(sent.begin() + s.offset, s.numel, want.begin() + s.offset);
  }
  CHECK(bits_of(arenas[0]) == bits_of(want));

  c.control.skip = 1;
  arenas = scatter(*backend, c);
  CHECK(std::ranges::all_of(arenas[0], [](float x) { return x == kSentinel; }));
}

TEST_CASE("the tensor of a block is found among any number of tensors", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto tensors = GENERATE(size_t{2}, 31, 32, 33, 64, 70, 1100);
  CAPTURE(backend->name(), tensors);
  std::vector<Size> sizes(tensors, {3, 1});
  sizes[tensors / 2] = {2 * 65536 + 1, 9};
  ApplyCase c(sizes, 1);
  const auto arenas = scatter(*backend, c);
  const std::vector<float> sent = c.expected_sum();
  for (const DgcSegment& s : c.workers[0].segments) {
    const auto from = static_cast<size_t>(s.offset), size = static_cast<size_t>(s.numel);
    REQUIRE(bits_of(std::span(arenas[0]).subspan(from, size)) == bits_of(std::span(sent).subspan(from, size)));
  }
}

TEST_CASE("a sent -0 is +0 in a dense sum, as in dgc_apply's", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  ApplyCase c({{300, 300}}, 2);
  for (DgcCase& worker : c.workers) {
    const float minus_zero = -0.f;
    std::memcpy(worker.message.data() + kWireHeaderBytes + worker.segments[0].values_at + 4 * 7, &minus_zero, 4);
  }
  auto arenas = scatter(*backend, c);
  const auto at = static_cast<size_t>(c.workers[0].segments[0].offset) + 7;
  CHECK(std::bit_cast<uint32_t>(arenas[0][at]) == 0);
  CHECK(std::bit_cast<uint32_t>(sum_of(*backend, arenas)[at]) == 0);
}

TEST_CASE("a dense sum gives dgc_apply's bits: every switch, several workers", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const bool correction = GENERATE(true, false);
  const float weight_decay = GENERATE(0.f, 1e-2f);
  const int workers = GENERATE(1, 4);
  CAPTURE(backend->name(), correction, weight_decay, workers);
  ApplyCase messages(kTransportSizes, workers);
  messages.ranges = {{3, 4, 0}};  // in the first gap
  messages.dense_sum = {1, 2, 3, 4};
  ApplyCase sums = messages;
  DgcApplyArgs rule;
  rule.momentum = 0.9f;
  rule.weight_decay = weight_decay;
  rule.nesterov = true;
  rule.momentum_correction = correction;
  for (int i = 0; i < 2; ++i) {
    apply(*backend, messages, rule);
    auto arenas = scatter(*backend, sums);
    const std::vector<float> sum = sum_of(*backend, arenas);
    const std::vector<float> want = sums.expected_sum();
    for (const DgcSegment& s : sums.workers[0].segments) {
      const auto from = static_cast<size_t>(s.offset), size = static_cast<size_t>(s.numel);
      REQUIRE(bits_of(std::span(sum).subspan(from, size)) == bits_of(std::span(want).subspan(from, size)));
    }
    std::vector<float> left = sum;  // the gaps stay as they are
    for (const DgcSegment& s : sums.workers[0].segments) std::fill_n(left.begin() + s.offset, s.numel, 0.f);
    REQUIRE(bits_of(step(*backend, sums, sum, rule)) == bits_of(left));
    REQUIRE(bits_of(sums.w) == bits_of(messages.w));
    REQUIRE(bits_of(sums.m) == bits_of(messages.m));
  }
}

TEST_CASE("skipped, or after a fault, dgc_step touches nothing", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  ApplyCase c({{3000, 30}}, 1);
  c.ranges = {{3, 4, 0}};
  c.dense_sum = {1, 2, 3, 4};
  const bool skip = GENERATE(true, false);
  c.control.skip = skip;
  if (!skip) c.control.fault = {WireFaultKind::stale, 1, 4};
  const auto w = c.w, m = c.m;
  const std::vector<float> sum(c.sum.size(), 1);
  CHECK(bits_of(step(*backend, c, sum, {})) == bits_of(sum));
  CHECK((bits_of(c.w) == bits_of(w) && bits_of(c.m) == bits_of(m)));
}
