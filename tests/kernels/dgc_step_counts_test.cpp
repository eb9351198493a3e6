// Counts the DGC step on tensors of a few sizes, for bench/gpu_model, which works out from them what a whole model
// takes. It prints one line of JSON for each launch.
#include <fmt/format.h>

#include <catch.hpp>
#include <iostream>

#include "tests/kernels/dgc_apply_case.h"
#include "tests/kernels/kernel_backends.h"

using namespace dgc;
using namespace dgc::test;

namespace {

struct CountedTensors {
  int tensors;
  int64_t numel;
};

// Sizes of which the number of strips, of blocks and of tensors can each be told apart.
constexpr std::array<CountedTensors, 3> kCountedTensors{{{16, 4096}, {16, 16384}, {8, 131072}}};

std::vector<Size> sizes_of(const CountedTensors& counted) {
  return std::vector<Size>(static_cast<size_t>(counted.tensors), {counted.numel, counted.numel / 1000});
}

// A guess that lists every segment's k largest elements and some more.
void guess_well(DgcCase& c) {
  for (size_t i = 0; i < c.segments.size(); ++i) {
    const DgcSegment& s = c.segments[i];
    std::vector<float> magnitudes(static_cast<size_t>(s.numel));
    std::transform(c.g.begin() + s.offset, c.g.begin() + s.offset + s.numel, magnitudes.begin(),
                   [](float g) { return std::abs(g); });
    std::nth_element(magnitudes.begin(), magnitudes.begin() + s.k - 1, magnitudes.end(), std::greater<>());
    c.guesses[i] = {magnitudes[static_cast<size_t>(s.k - 1)], 1, 0.96f, s.k, true};
  }
}

// A sound message whose indices are spread over each segment.
void fill_message(DgcCase& c, uint32_t seed) {
  std::mt19937 random(seed);
  for (const DgcSegment& s : c.segments) {
    std::vector<uint32_t> ends(static_cast<size_t>(s.blocks()));
    std::vector<uint16_t> offsets;
    std::vector<float> values;
    for (int64_t e = 0; e < s.k; ++e) {
      const int64_t index = e * (s.numel / s.k) + static_cast<int64_t>(random()) % (s.numel / s.k);
      for (auto b = static_cast<size_t>(index / kDgcBlock); b < ends.size(); ++b) ++ends[b];
      offsets.push_back(static_cast<uint16_t>(index % kDgcBlock));
      values.push_back(1e-3f * static_cast<float>(e + 1));
    }
    std::byte* payload = c.message.data() + sizeof(WireHeader);
    std::memcpy(payload + s.block_ends_at, ends.data(), ends.size() * sizeof(uint32_t));
    std::memcpy(payload + s.offsets_at, offsets.data(), offsets.size() * sizeof(uint16_t));
    std::memcpy(payload + s.values_at, values.data(), values.size() * sizeof(float));
  }
  seal(c);
}

// Each case starts with the same seed, so that all launches have the same grid.
template <typename Run>
void print_counts(const CountedTensors& counted, int workers, bool decays, const Run& run) {
  EmulatedBackend backend(
      1, make_cpu_device(), ptx::counting_runner([&](const ptx::CountedLaunch& launch) {
        std::cout << fmt::format(R"({{"tensors": {}, "numel": {}, "workers": {}, "decays": {}, "launch": {}}})",
                                 counted.tensors, counted.numel, workers, decays, ptx::to_json(launch))
                  << "\n";
      }));
  run(backend);
}

void count_compress_of(const CountedTensors& counted) {
  DgcCase c(sizes_of(counted));
  fill_normal(c, c.g, 1);
  guess_well(c);
  Rule rule;
  rule.momentum = 0.9f;
  print_counts(counted, 1, false, [&](EmulatedBackend& backend) { compress(backend, c, rule); });
  for (const DgcGuess& guess : c.guesses) REQUIRE(guess.hit);
}

void count_apply_of(const CountedTensors& counted, int workers, bool decays) {
  std::vector<DgcCase> messages;
  for (int worker = 0; worker < workers; ++worker) {
    DgcCase c(sizes_of(counted));
    c.header.worker = static_cast<uint32_t>(worker);
    fill_message(c, static_cast<uint32_t>(worker));
    if (worker > 0) c.g = c.u = c.v = {};  // only the message counts
    messages.push_back(std::move(c));
  }
  ApplyCase all(std::move(messages));
  DgcApplyArgs rule;
  rule.momentum = 0.9f;
  rule.weight_decay = decays ? 1e-4f : 0.f;
  print_counts(counted, workers, decays, [&](EmulatedBackend& backend) { apply(backend, all, rule); });
  REQUIRE(all.control.fault.kind == WireFaultKind::none);
}

}  // namespace

TEST_CASE("the DGC step is counted for bench/gpu_model", "[.][gpu_model]") {
  if (ptx::runner() == nullptr) {
    WARN("skipped: this build has no nvcc, so there is no PTX whose instructions can be counted");
    return;
  }
  for (const CountedTensors& counted : kCountedTensors) {
    count_compress_of(counted);
    for (const int workers : {4, 64}) {
      for (const bool decays : {false, true}) count_apply_of(counted, workers, decays);
    }
  }
}
