#include <catch.hpp>
#include <limits>

#include "kernels/dgc_guess.h"
#include "tests/kernels/dgc_case.h"
#include "tests/kernels/kernel_backends.h"

using namespace dgc;
using namespace dgc::test;

namespace {

Rule rule_of(bool correction, bool nesterov, bool masking) {
  Rule rule;
  rule.scale = 0.25f;
  rule.momentum = 0.9f;
  rule.momentum_correction = correction;
  rule.nesterov = nesterov;
  rule.factor_masking = masking;
  return rule;
}

// Both ways for some steps, with fresh gradients in each.
void check_steps(Backend& backend, DgcCase c, const Rule& rule, int steps, uint32_t seed) {
  DgcCase expected = c;
  for (int step = 0; step < steps; ++step) {
    CAPTURE(step);
    fill_normal(c, c.g, seed + static_cast<uint32_t>(step));
    expected.g = c.g;
    expected.step = ++c.step;
    compress(backend, c, rule);
    reference_compress(expected, rule);
    REQUIRE(same_state(c, expected));
  }
}

}  // namespace

TEST_CASE("dgc_compress is its definition at every size", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto numel = GENERATE(int64_t{1}, 31, 33, 511, 512, 513, 1000, 4097, 65535, 65536, 65537, 131073);
  for (const int64_t k : {int64_t{1}, numel / 1000, numel / 4, numel}) {
    if (k < 1 || k > numel) continue;
    CAPTURE(backend->name(), numel, k);
    check_steps(*backend, DgcCase({{numel, k}}), rule_of(true, false, true), 2, 7);
  }
}

TEST_CASE("dgc_compress knows every switch", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const bool correction = GENERATE(true, false), nesterov = GENERATE(true, false), masking = GENERATE(true, false);
  CAPTURE(backend->name(), correction, nesterov, masking);
  DgcCase c({{5000, 5}, {1, 1}, {67000, 70}, {333, 333}});
  fill_normal(c, c.u, 1);
  fill_normal(c, c.v, 2);
  check_steps(*backend, c, rule_of(correction, nesterov, masking), 4, 3);
}

TEST_CASE("dgc_compress works on more blocks than there are warps", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  std::vector<Size> sizes;
  for (int64_t i = 0; i < 70; ++i) sizes.push_back({1500 + 7 * i, 8 + i % 5});
  DgcCase c(sizes);
  fill_normal(c, c.v, 1);
  check_steps(*backend, c, rule_of(true, false, true), 3, 3);
}

TEST_CASE("dgc_compress sends what masked momentum would still have added") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const bool nesterov = GENERATE(true, false);
  CAPTURE(backend->name(), nesterov);
  DgcCase c({{5000, 5}, {1, 1}, {67000, 70}, {333, 333}});
  fill_normal(c, c.u, 1);
  fill_normal(c, c.v, 2);
  Rule rule = rule_of(true, nesterov, true);
  rule.u_share = 9;
  check_steps(*backend, c, rule, 4, 3);
}

TEST_CASE("a step from other arenas leaves them as they are and gives the same bits", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const bool correction = GENERATE(true, false), nesterov = GENERATE(true, false);
  Rule rule = rule_of(correction, nesterov, true);
  rule.u_share = GENERATE(0.f, 9.f);
  if (!correction && rule.u_share > 0) return;
  CAPTURE(backend->name(), correction, nesterov, rule.u_share);
  DgcCase there({{5000, 5}, {1, 1}, {67000, 70}, {333, 333}});
  fill_normal(there, there.u, 1);
  fill_normal(there, there.v, 2);
  DgcCase apart = there;
  for (uint32_t step = 0; step < 3; ++step) {
    CAPTURE(step);
    fill_normal(there, there.g, 3 + step);
    apart.g = there.g;
    ++there.step, ++apart.step;
    std::vector<float> u = apart.u, v = apart.v;
    const auto u_before = bits_of(u), v_before = bits_of(v);
    for (const DgcSegment& s : apart.segments) {
      if (correction) std::fill_n(apart.u.begin() + s.offset, s.numel, NAN);
      std::fill_n(apart.v.begin() + s.offset, s.numel, NAN);
    }
    compress(*backend, apart, rule, {&u, &v});
    compress(*backend, there, rule);
    REQUIRE(same_state(there, apart));
    CHECK((bits_of(u) == u_before && bits_of(v) == v_before));
  }
}

TEST_CASE("a step that is taken back, as its gradient was not finite, does no harm to the next", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t every = GENERATE(1, 7, 3000);
  const float broken = GENERATE(std::numeric_limits<float>::infinity(), std::nanf(""));
  CAPTURE(backend->name(), every, broken);
  DgcCase c({{5000, 5}, {1, 1}, {20000, 20}, {333, 333}});
  DgcCase expected = c;
  for (uint32_t step = 0; step < 7; ++step) {
    CAPTURE(step);
    fill_normal(c, c.g, 3 + step);
    ++c.step;
    if (step == 3 || step == 4) {  // of all that it makes the guesses alone stay
      DgcCase dropped = c;
      for (const DgcSegment& s : c.segments) {
        for (int64_t i = 0; i < s.numel; i += every) dropped.g[static_cast<size_t>(s.offset + i)] = broken;
      }
      compress(*backend, dropped, rule_of(true, true, true));
      c.guesses = dropped.guesses;
      continue;
    }
    expected.g = c.g;
    expected.step = c.step;
    compress(*backend, c, rule_of(true, true, true));
    reference_compress(expected, rule_of(true, true, true));
    REQUIRE(same_state(c, expected));
  }
}

TEST_CASE("a hand-made step: momentum, velocity, selection, masking", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  DgcCase c({{4, 2}});
  const auto at = [&](std::vector<float>& arena) { return arena.data() + c.segments[0].offset; };
  const float g[] = {8, 0, -4, 4}, u[] = {2, 4, 0, -2}, v[] = {1, -3, 0, 0};
  std::copy_n(g, 4, at(c.g));
  std::copy_n(u, 4, at(c.u));
  std::copy_n(v, 4, at(c.v));
  Rule rule;
  rule.scale = 0.5f;
  rule.momentum = 0.5f;
  compress(*backend, c, rule);
  // g' = {4, 0, -2, 2}; u = {5, 2, -2, 1}; v = {6, -1, -2, 1}: the largest two are 6 and -2.
  const float u_after[] = {0, 2, 0, 1}, v_after[] = {0, -1, 0, 1};
  CHECK(std::equal(u_after, u_after + 4, at(c.u)));
  CHECK(std::equal(v_after, v_after + 4, at(c.v)));
  const std::byte* payload = c.payload();
  uint16_t offsets[2];
  float values[2];
  std::memcpy(offsets, payload + c.segments[0].offsets_at, sizeof offsets);
  std::memcpy(values, payload + c.segments[0].values_at, sizeof values);
  CHECK((offsets[0] == 0 && offsets[1] == 2));
  CHECK((values[0] == 6 && values[1] == -2));
}

TEST_CASE("ties, zeros and odd values: k stays exact and the lower index goes first", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int pattern = GENERATE(range(0, 7));
  CAPTURE(backend->name(), pattern);
  DgcCase c({{65536 + 577, 200}, {300, 3}, {65536 + 77, 20000}});
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const DgcSegment& s : c.segments) {
    for (int64_t i = 0; i < s.numel; ++i) {
      float& v = c.v[static_cast<size_t>(s.offset + i)];
      const int64_t mixed = i * 2654435761 % 4093;
      if (pattern == 0) v = 0;
      if (pattern == 1) v = i % 2 ? -1.5f : 1.5f;                         // nothing but ties
      if (pattern == 2) v = static_cast<float>(mixed % 5) - 2;            // ties across every block
      if (pattern == 3) v = static_cast<float>(mixed) * 0x1p-149f;        // denormals
      if (pattern == 4) v = static_cast<float>(mixed - 2000) * 0x1p104f;  // near the largest float
      if (pattern == 5) v = i % 1000 == 3 ? (i % 2 ? kInf : -kInf) : static_cast<float>(mixed);
      if (pattern == 6) v = i % 5000 == 9 ? -std::nanf("7") : (i % 3 ? 0.f : -0.f);
    }
  }
  DgcCase expected = c;
  const Rule rule = rule_of(true, false, true);
  for (int step = 0; step < 2; ++step) {  // no gradient: v changes by what is sent alone
    CAPTURE(step);
    compress(*backend, c, rule);
    reference_compress(expected, rule);
    REQUIRE(same_state(c, expected));
  }
}

TEST_CASE("skipped, a step touches nothing", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  DgcCase c({{5000, 5}, {100, 1}});
  fill_normal(c, c.g, 1);
  fill_normal(c, c.v, 2);
  c.skip = 1;
  const DgcCase before = c;
  compress(*backend, c, rule_of(true, false, true));
  CHECK(same_state(c, before));
  CHECK(c.guesses[0].k == 0);
  c.skip = 0;  // and the next one is whole
  DgcCase expected = c;
  compress(*backend, c, rule_of(true, false, true));
  reference_compress(expected, rule_of(true, false, true));
  CHECK(same_state(c, expected));
}

TEST_CASE("the guess, the threads and their order never change the result", "[dgc]") {
  DgcCase start({{20000, 200}, {4096, 4}, {1025, 64}, {65537, 100}});
  fill_normal(start, start.g, 11);
  Rule rule = rule_of(true, false, true);
  rule.scale = 1;
  DgcCase expected = start;
  reference_compress(expected, rule);

  std::vector<std::unique_ptr<Backend>> all;
  for (const BackendFactory& factory : kernel_backends()) all.push_back(factory.make());
  for (const int threads : {1, 5}) all.push_back(make_cpu_backend(threads));
  for (const uint64_t seed : {7u, 1234u}) all.push_back(std::make_unique<EmulatedBackend>(seed));
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const auto& backend : all) {
    for (const float threshold : {0.f, 1e-38f, 0.1f, 2.f, 2.9f, 3.2f, 3.4f, 1e30f, kInf, std::nanf(""), -1.f}) {
      for (const float tail : {0.2f, 1.f}) {
        CAPTURE(backend->name(), threshold, tail);
        DgcCase c = start;
        for (size_t i = 0; i < c.guesses.size(); ++i) c.guesses[i] = {threshold, 1.f, tail, c.segments[i].k, false};
        compress(*backend, c, rule);
        REQUIRE(same_state(c, expected));
      }
    }
  }
}

TEST_CASE("a list that ends in many equal magnitudes is cut at the right one", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  // As many ties as one by one can be looked at on a GPU, one fewer and one more, and far more than candidates fit.
  const int64_t ties = GENERATE(int64_t{1}, 300, 1023, 1024, 1025, 40000);
  CAPTURE(backend->name(), ties);
  DgcCase c({{70000, 1000}, {66000, 300}, {110000, 500 + ties}});  // of the last tensor all ties are sent
  for (const DgcSegment& s : c.segments) {
    for (int64_t i = 0; i < s.numel; ++i)
      c.g[static_cast<size_t>(s.offset + i)] = i % 100 == 0 && i < 50000 ? 3.f : 0.f;
    for (int64_t i = 0; i < ties; ++i) c.g[static_cast<size_t>(s.offset + s.numel - 1 - i)] = i % 2 ? 2.f : -2.f;
  }
  for (size_t i = 0; i < c.guesses.size(); ++i) c.guesses[i] = {1.99f, 1.f, 1.f, c.segments[i].k, false};
  DgcCase expected = c;
  compress(*backend, c, Rule{});
  reference_compress(expected, Rule{});
  CHECK(same_state(c, expected));
}

TEST_CASE("dgc_compress finds the places of what is sent behind many blocks", "[dgc]") {
  // With a guess that is good, threads add up what 32 blocks before theirs send, at a time, and else 256 blocks.
#ifdef DGC_SANITIZED  // 17 million elements take minutes
  const bool guessed = true;
#else
  const bool guessed = GENERATE(true, false);
#endif
  const auto backend = GENERATE_COPY(from_range(guessed ? kernel_backends() : quick_kernel_backends())).make();
  CAPTURE(backend->name(), guessed);
  const int64_t numel = (guessed ? 40 : 258) * kDgcBlock;
  DgcCase c({{numel, 80}});
  const DgcSegment& s = c.segments[0];
  for (int64_t i = 0; i < s.k; ++i) {
    const int64_t at = i % 2 == 0 ? i * (numel / s.k) : numel - 1 - i / 2 * 40'000;  // some in each of the last blocks
    c.g[static_cast<size_t>(s.offset + at)] = 3 + static_cast<float>(i) / 64;
  }
  if (guessed) c.guesses[0] = {2.9f, 1.f, 1.f, s.k, false};
  DgcCase expected = c;
  compress(*backend, c, Rule{});
  reference_compress(expected, Rule{});
  CHECK(same_state(c, expected));
  CHECK(c.guesses[0].hit == guessed);
}

TEST_CASE("a list of as many candidates as there is room for, or one more, spoils no other", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t more = GENERATE(0, 1, 2);
  CAPTURE(backend->name(), more);
  DgcCase c({{kDgcBlock, 1000}, {kDgcBlock, 1000}});
  constexpr int64_t kGpusListShare = 8;  // kDgcListShare of kernels/cuda
  const int64_t most = candidate_limit(c.segments[0], kGpusListShare);
  for (size_t i = 0; i < 2; ++i) {
    const DgcSegment& s = c.segments[i];
    const int64_t candidates = i == 0 ? most + more : 1500;
    for (int64_t n = 0; n < candidates; ++n) {
      c.g[static_cast<size_t>(s.offset + n * (s.numel / candidates))] = 3 + static_cast<float>(n % 1000) / 64;
    }
    c.guesses[i] = {2.9f, 1.f, 1.f, s.k, false};
  }
  DgcCase expected = c;
  compress(*backend, c, Rule{});
  reference_compress(expected, Rule{});
  CHECK(same_state(c, expected));
  CHECK(c.guesses[1].hit);
}

TEST_CASE("a block that sends nothing any more leaves no trace of what it sent", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  DgcCase c({{3 * kDgcBlock, 200}});
  const DgcSegment& s = c.segments[0];
  DgcCase expected = c;
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    for (int64_t i = 0; i < s.numel; ++i) {
      const bool is_silent = step == 2 && i / kDgcBlock == 1;
      const float small = 0.001f * static_cast<float>(i % 5);
      c.g[static_cast<size_t>(s.offset + i)] = i % 300 == 0 && !is_silent ? 3 + static_cast<float>(i % 7) : small;
    }
    expected.g = c.g;
    expected.step = ++c.step;
    for (DgcCase* one : {&c, &expected}) {
      for (auto* arena : {&one->u, &one->v}) std::fill_n(arena->begin() + s.offset, s.numel, 0.f);
    }
    c.guesses[0] = {3.f, 1.f, 1.f, s.k, false};
    compress(*backend, c, Rule{});
    reference_compress(expected, Rule{});
    REQUIRE(same_state(c, expected));
  }
}

TEST_CASE("once steady, the guess is good and no second pass is needed", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  DgcCase c({{70000, 70}, {20000, 20}, {5000, 5}});
  int hits = 0;
  constexpr int kSteps = 50, kLast = 15;
  for (int step = 0; step < kSteps; ++step) {
    fill_normal(c, c.g, 100 + static_cast<uint32_t>(step));
    compress(*backend, c, rule_of(true, false, true));
    for (const DgcGuess& guess : c.guesses) hits += step >= kSteps - kLast && guess.hit;
  }
  CHECK(hits >= 3 * kLast * 9 / 10);
  CHECK(c.guesses[0].hit);
}

TEST_CASE("conservation: sent plus kept is what was accumulated, bit for bit", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const float deviation = GENERATE(1e-9f, 1e-6f, 1.f, 1e4f, 1e8f, 1e30f);
  CAPTURE(backend->name(), deviation);
  DgcCase c({{100000, 1000}});
  fill_normal(c, c.v, 5, deviation);
  const std::vector<float> before = c.v;
  compress(*backend, c, rule_of(true, false, true));  // the gradient is zero

  const DgcSegment& s = c.segments[0];
  const std::byte* payload = c.payload();
  std::vector<float> restored = c.v;
  for (size_t e = 0; e < static_cast<size_t>(s.k); ++e) {
    uint16_t offset = 0;
    float sent = 0;
    std::memcpy(&offset, payload + s.offsets_at + 2 * e, 2);
    std::memcpy(&sent, payload + s.values_at + 4 * e, 4);
    uint32_t ends[2];
    std::memcpy(ends, payload + s.block_ends_at, sizeof ends);
    float& kept = restored[static_cast<size_t>(s.offset + offset + (e < ends[0] ? 0 : 65536))];
    REQUIRE(std::isfinite(sent));
    kept += sent;
  }
  CHECK(bits_of(restored) == bits_of(before));
}
