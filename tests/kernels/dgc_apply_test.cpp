#include <catch2/catch.hpp>

#include "tests/backends.h"
#include "tests/kernels/dgc_case.h"

using namespace dgc;
using namespace dgc::test;

namespace {

// Messages of several workers for the same segments, and arenas to apply them to.
struct Messages {
  Messages(const std::vector<Size>& sizes, int workers, WireValues values) {
    const auto backend = make_cpu_backend(1);
    for (int worker = 0; worker < workers; ++worker) {
      DgcCase c(sizes, values);
      fill_normal(c, c.g, 40 + static_cast<uint32_t>(worker), 1000);
      DgcCompressArgs rule;
      backend->dgc_compress(c.args(rule));
      cases.push_back(c);
    }
    for (const DgcCase& c : cases) payloads.push_back(reinterpret_cast<const std::byte*>(c.payload.data()));
    sum.assign(cases[0].v.size(), 0);
  }

  // G by definition: every worker's entries in worker order.
  std::vector<float> expected_sum() const {
    std::vector<float> total(sum.size(), 0);
    for (const DgcCase& c : cases) {
      for (const DgcSegment& s : c.segments) {
        const auto* payload = reinterpret_cast<const std::byte*>(c.payload.data());
        uint32_t entry = 0;
        for (int64_t b = 0; b < s.blocks(); ++b) {
          uint32_t end = 0;
          std::memcpy(&end, payload + s.block_ends_at + 4 * b, 4);
          for (; entry < end; ++entry) {
            uint16_t offset = 0, half = 0;
            float value = 0;
            std::memcpy(&offset, payload + s.offsets_at + 2 * entry, 2);
            std::memcpy(&half, payload + s.values_at + 2 * entry, 2);
            if (c.values == WireValues::fp32) std::memcpy(&value, payload + s.values_at + 4 * entry, 4);
            if (c.values == WireValues::fp16) value = half_to_float(half);
            total[static_cast<size_t>(s.offset + b * 65536 + offset)] += value;
          }
        }
      }
    }
    return total;
  }

  std::vector<DgcCase> cases;
  std::vector<const std::byte*> payloads;
  std::vector<float> sum;
};

}  // namespace

TEST_CASE("dgc_apply is its definition: every switch, several workers", "[dgc]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const bool correction = GENERATE(true, false), nesterov = GENERATE(true, false);
  const float weight_decay = GENERATE(0.f, 1e-2f);
  const int workers = GENERATE(1, 3);
  const auto values = GENERATE(WireValues::fp32, WireValues::fp16);
  CAPTURE(backend->name(), correction, nesterov, weight_decay, workers, values);

  Messages messages({{1, 1}, {17, 5}, {65537, 700}, {200000, 2000}}, workers, values);
  DgcCase& layout = messages.cases[0];
  std::vector<float> w(layout.v.size(), kSentinel), m(layout.v.size(), kSentinel);
  const std::vector<float> total = messages.expected_sum();
  for (const DgcSegment& s : layout.segments) std::fill_n(m.begin() + s.offset, s.numel, 0.f);
  fill_normal(layout, w, 90, 0.1f);
  auto want_w = w, want_m = m;

  DgcApplyArgs args;
  args.segments = layout.segments;
  args.payloads = messages.payloads;
  args.values = values;
  args.sum = messages.sum.data();
  args.m = m.data();
  args.w = w.data();
  args.lr = 0.1f;
  args.momentum = 0.9f;
  args.weight_decay = weight_decay;
  args.nesterov = nesterov;
  args.momentum_correction = correction;
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    backend->dgc_apply(args);
    for (const DgcSegment& s : layout.segments) {
      for (auto i = static_cast<size_t>(s.offset); i < static_cast<size_t>(s.offset + s.numel); ++i) {
        const float d = correction ? weight_decay * want_w[i] : std::fma(weight_decay, want_w[i], total[i]);
        want_m[i] = std::fma(0.9f, want_m[i], d);
        const float stepped = nesterov ? std::fma(0.9f, want_m[i], d) : want_m[i];
        want_w[i] = std::fma(-0.1f, correction ? total[i] + stepped : stepped, want_w[i]);
      }
    }
    REQUIRE(bits_of(w) == bits_of(want_w));
    REQUIRE(bits_of(m) == bits_of(want_m));
    REQUIRE(std::ranges::all_of(messages.sum, [](float x) { return std::bit_cast<uint32_t>(x) == 0; }));
  }
}

TEST_CASE("workers are added in worker order", "[dgc]") {
  const auto backend = GENERATE(from_range(backends())).make();
  // (1e8 + 1) - 1e8 is 0 in fp32 while (1e8 - 1e8) + 1 is 1: the order shows.
  const float sent[3] = {1e8f, 1.f, -1e8f};
  std::vector<DgcCase> cases(3, DgcCase({{20, 1}}, WireValues::fp32));
  const int order = GENERATE(0, 1);
  const int workers[2][3] = {{0, 1, 2}, {0, 2, 1}};
  std::vector<const std::byte*> payloads;
  for (const int worker : workers[order]) {
    DgcCase& c = cases[static_cast<size_t>(worker)];
    c.g[static_cast<size_t>(c.segments[0].offset) + 7] = sent[worker];
    DgcCompressArgs rule;
    backend->dgc_compress(c.args(rule));
    payloads.push_back(reinterpret_cast<const std::byte*>(c.payload.data()));
  }
  std::vector<float> sum(cases[0].v.size(), 0), w(cases[0].v.size(), 0);
  DgcApplyArgs args;
  args.segments = cases[0].segments;
  args.payloads = payloads;
  args.sum = sum.data();
  args.w = w.data();
  args.lr = 1;
  backend->dgc_apply(args);
  CHECK(w[static_cast<size_t>(cases[0].segments[0].offset) + 7] == (order == 0 ? 0.f : -1.f));
}

TEST_CASE("dgc_pack gathers and scales", "[dgc]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const float arena[] = {1, 2, 3, 4, 5, 6};
  const DgcRange ranges[] = {{4, 2, 0}, {1, 1, 2}};
  float packed[] = {0, 0, 0, kSentinel};
  backend->dgc_pack({ranges, arena, packed, 0.5f});
  CHECK((packed[0] == 2.5f && packed[1] == 3 && packed[2] == 1 && packed[3] == kSentinel));
}
