#include <catch.hpp>

#include "tests/kernels/dgc_apply_case.h"
#include "tests/kernels/kernel_backends.h"

using namespace dgc;
using namespace dgc::test;

namespace {

// Two steps by the same messages, beside the definition of a step.
void check_steps(Backend& backend, const std::vector<Size>& sizes, int workers, const DgcApplyArgs& rule) {
  ApplyCase c(sizes, workers);
  const std::vector<float> total = c.expected_sum();
  auto want_w = c.w, want_m = c.m;
  for (int step = 0; step < 2; ++step) {
    CAPTURE(step);
    apply(backend, c, rule);
    for (const DgcSegment& s : c.workers[0].segments) {
      for (auto i = static_cast<size_t>(s.offset); i < static_cast<size_t>(s.offset + s.numel); ++i) {
        const float d =
            rule.momentum_correction ? rule.weight_decay * want_w[i] : std::fma(rule.weight_decay, want_w[i], total[i]);
        want_m[i] = std::fma(rule.momentum, want_m[i], d);
        const float stepped = rule.nesterov ? std::fma(rule.momentum, want_m[i], d) : want_m[i];
        want_w[i] = std::fma(-0.1f, rule.momentum_correction ? total[i] + stepped : stepped, want_w[i]);
      }
    }
    REQUIRE(bits_of(c.w) == bits_of(want_w));
    REQUIRE(bits_of(c.m) == bits_of(want_m));
    REQUIRE(std::ranges::all_of(c.sum, [](float x) { return std::bit_cast<uint32_t>(x) == 0; }));
    REQUIRE(c.control.fault.kind == WireFaultKind::none);
  }
}

}  // namespace

TEST_CASE("dgc_apply is its definition: every switch, several workers", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  DgcApplyArgs rule;
  rule.momentum = 0.9f;
  rule.momentum_correction = GENERATE(true, false);
  rule.nesterov = GENERATE(true, false);
  rule.weight_decay = GENERATE(0.f, 1e-2f);
  const int workers = GENERATE(1, 3);
  CAPTURE(backend->name(), rule.momentum_correction, rule.nesterov, rule.weight_decay, workers);
  check_steps(*backend, {{1, 1}, {17, 5}, {65537, 700}, {4099, 40}, {513, 513}}, workers, rule);
}

TEST_CASE("where nothing is compressed, messages are headers alone, and every kernel takes them", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  DgcCase c(std::vector<Size>{});
  compress(*backend, c, Rule{});
  DgcCase expected(std::vector<Size>{});
  expected.step = c.step;
  reference_compress(expected, Rule{});
  CHECK(same_state(c, expected));
  for (const int workers : {1, 3}) check_steps(*backend, {}, workers, DgcApplyArgs{});
}

TEST_CASE("dgc_apply adds up any number of entries of a block", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  DgcApplyArgs rule;
  rule.momentum = 0.9f;
  rule.weight_decay = GENERATE(0.f, 1e-2f);
  const int64_t entries = GENERATE(4096, 4097, 30000);  // the CUDA backend has room for 8,192 in shared memory
  CAPTURE(backend->name(), rule.weight_decay, entries);
  check_steps(*backend,
              {{600, 6}, {30001, entries}, {65536 + 600, 66}, {700, 7}, {30001, entries}, {600, 60}, {65536 + 600, 70}},
              2, rule);
}

TEST_CASE("dgc_apply adds up one entry more than there is room for in shared memory", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t entries = GENERATE(8192, 8193);
  CAPTURE(backend->name(), entries);
  check_steps(*backend, {{30001, entries}, {600, 6}}, 1, DgcApplyArgs{});
}

TEST_CASE("workers are added in worker order", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  // (1e8 + 1) - 1e8 is 0 in fp32 while (1e8 - 1e8) + 1 is 1: the order shows.
  const std::vector<float> sent =
      GENERATE(as<std::vector<float>>{}, std::vector<float>{1e8f, 1.f, -1e8f}, std::vector<float>{1e8f, -1e8f, 1.f});
  ApplyCase c({{20, 1}}, 3);
  const auto at = static_cast<size_t>(c.workers[0].segments[0].offset) + 7;
  for (size_t worker = 0; worker < 3; ++worker) {
    DgcCase fresh({{20, 1}});
    fresh.header.worker = static_cast<uint32_t>(worker);
    fresh.g[at] = sent[worker];
    reference_compress(fresh, Rule{});
    c.workers[worker] = fresh;
  }
  c.w[at] = 0;
  c.control.lr = 1;
  apply(*backend, c, {});
  CHECK(c.w[at] == (sent[1] == 1 ? 0.f : -1.f));
}

TEST_CASE("dgc_apply takes more workers than a block has threads", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const float weight_decay = GENERATE(0.f, 1e-2f);
  CAPTURE(backend->name(), weight_decay);
  DgcApplyArgs rule;
  rule.weight_decay = weight_decay;
  check_steps(*backend, {{17, 5}, {600, 300}}, 259, rule);
}

TEST_CASE("dgc_apply misses nothing that the last of many workers alone send", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  std::vector<DgcCase> workers;
  for (uint32_t worker = 0; worker < 259; ++worker) {
    DgcCase c({{1000, 1}});
    c.header.worker = worker;
    c.g[static_cast<size_t>(c.segments[0].offset) + (worker < 256 ? 5 : 600 + worker)] = 1;
    reference_compress(c, Rule{});
    workers.push_back(std::move(c));
  }
  ApplyCase c(std::move(workers));
  const std::vector<float> total = c.expected_sum();
  const std::vector<float> before = c.w;
  c.control.lr = 1;
  apply(*backend, c, {});
  for (size_t i = 0; i < total.size(); ++i) REQUIRE(c.w[i] == before[i] - total[i]);
}

TEST_CASE("what travels dense takes the step of SGD in the same call", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const bool nesterov = GENERATE(true, false);
  const float weight_decay = GENERATE(0.f, 1e-2f);
  ApplyCase c({{700, 7}}, 2);
  const auto behind = static_cast<int64_t>(c.w.size());
  for (auto* arena : {&c.w, &c.m, &c.sum}) arena->resize(arena->size() + 2000, 0.25f);
  c.ranges = {{behind + 1200, 513, 0}, {behind + 16, 1, 513}, {behind + 64, 300, 514}};
  for (int i = 0; i < 814; ++i) c.dense_sum.push_back(static_cast<float>(i % 37) - 11);
  auto want_w = c.w, want_m = c.m;
  for (const DgcRange& range : c.ranges) {
    for (int64_t i = 0; i < range.numel; ++i) {
      const auto at = static_cast<size_t>(range.offset + i);
      const float g = c.dense_sum[static_cast<size_t>(range.packed_at + i)];
      const float d = std::fma(weight_decay, want_w[at], g);
      want_m[at] = std::fma(0.5f, want_m[at], d);
      want_w[at] = std::fma(-0.1f, nesterov ? std::fma(0.5f, want_m[at], d) : want_m[at], want_w[at]);
    }
  }
  DgcApplyArgs rule;
  rule.momentum = 0.5f;
  rule.weight_decay = weight_decay;
  rule.nesterov = nesterov;
  apply(*backend, c, rule);
  const auto from = static_cast<size_t>(behind);
  CHECK(std::equal(want_w.begin() + behind, want_w.end(), c.w.begin() + behind));
  CHECK(std::equal(want_m.begin() + behind, want_m.end(), c.m.begin() + behind));
  CHECK(std::all_of(c.sum.begin() + behind, c.sum.end(), [](float x) { return x == 0.25f; }));
  CHECK(c.w[from] == 0.25f);
}

TEST_CASE("skipped, or after a fault, dgc_apply touches nothing", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  ApplyCase c({{3000, 30}}, 2);
  c.ranges = {{16, 4, 0}};
  c.dense_sum = {1, 2, 3, 4};
  const bool skip = GENERATE(true, false);
  c.control.skip = skip;
  if (!skip) c.control.fault = {WireFaultKind::stale, 1, 4};
  const auto w = c.w, m = c.m;
  const StepControl control = c.control;
  apply(*backend, c, {});
  CHECK((bits_of(c.w) == bits_of(w) && bits_of(c.m) == bits_of(m)));
  CHECK(std::memcmp(&c.control, &control, sizeof(control)) == 0);
}

TEST_CASE("dgc_pack gathers and scales", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  std::vector<float> arena(3000), packed(1500, kSentinel), scales{0.5f};
  for (size_t i = 0; i < arena.size(); ++i) arena[i] = static_cast<float>(i);
  std::vector<DgcRange> ranges{{2000, 300, 0}, {1, 1, 300}, {64, 1024, 301}};
  const Copy from(*backend, arena), to(*backend, packed), scale(*backend, scales);
  const Copy table(*backend, ranges);
  backend->dgc_pack({{table.data(), 3, 1325}, from.data(), to.data(), scale.data()});
  to.fetch();
  CHECK((packed[0] == 1000 && packed[299] == 1149.5f && packed[300] == 0.5f && packed[301] == 32));
  CHECK((packed[1324] == 543.5f && packed[1325] == kSentinel));
}
