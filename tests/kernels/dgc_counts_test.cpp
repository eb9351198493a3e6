// How much the PTX of the DGC kernels executes and moves, phase by phase. A kernel that does more than what is written
// here turns red; one that does less asks for the new numbers. PTX loads a kernel's parameters again where it runs
// short of its own registers, which machine code does not, so some percents are no cost.
#include <catch.hpp>
#include <cmath>

#include "tests/kernels/dgc_apply_case.h"
#include "tests/kernels/dgc_code_case.h"
#include "tests/kernels/kernel_backends.h"

using namespace dgc;
using namespace dgc::test;

namespace {

constexpr int64_t kLarge = 1 << 20, kSmall = 5000;
constexpr uint64_t kSectorBytes = 32;

// Of PTX's instructions, of sectors of 32 bytes of global memory, and of atomics on global and shared memory.
struct PhaseCounts {
  const char* name;
  uint64_t instructions, loaded, stored, atomics;
};

// The launch that run(backend) makes; false where this build has no nvcc.
template <typename Run>
bool count_launch(const Run& run, ptx::CountedLaunch& launch) {
  std::vector<ptx::CountedLaunch> launches;
  const auto runner = ptx::counting_runner([&](const ptx::CountedLaunch& one) { launches.push_back(one); });
  if (runner == nullptr) {
    WARN("skipped: this build has no nvcc, so there is no PTX whose instructions can be counted");
    return false;
  }
  EmulatedBackend backend(1, make_cpu_device(), runner);
  run(backend);
  REQUIRE(launches.size() == 1);
  launch = launches[0];
  REQUIRE(launch.grid == 4);
  return true;
}

// Another release of nvcc may arrange things a little differently.
bool is_near(uint64_t count, uint64_t expected) {
  const double difference = static_cast<double>(count) - static_cast<double>(expected);
  return std::abs(difference) <= std::max(16.0, 0.03 * static_cast<double>(expected));
}

void check_phases(const ptx::CountedLaunch& launch, const std::vector<PhaseCounts>& expected) {
  CAPTURE(launch.kernel, ptx::to_json(launch));
  REQUIRE(launch.phases.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const ptx::Counts& phase = launch.phases[i];
    CAPTURE(expected[i].name);
    CHECK(is_near(phase.instructions, expected[i].instructions));
    CHECK(is_near(phase.loaded_sectors, expected[i].loaded));
    CHECK(is_near(phase.stored_sectors, expected[i].stored));
    CHECK(is_near(phase.global_atomics + phase.shared_atomics, expected[i].atomics));
  }
}

struct CompressKind {
  bool correction = true, nesterov = false, guess_is_good = true;
};

bool count_compress(int64_t numel, const CompressKind& kind, ptx::CountedLaunch& launch) {
  return count_launch(
      [&](EmulatedBackend& backend) {
        DgcCase c({{numel, numel / 1000}});
        fill_normal(c, c.g, 1);
        // One in a thousand normal numbers is larger than 3.29; with Nesterov momentum v becomes 1.9 times the
        // gradient.
        const float threshold = kind.nesterov && kind.correction ? 1.9f * 3.29f : 3.29f;
        if (kind.guess_is_good) c.guesses[0] = {threshold, 1, 0.96f, c.segments[0].k, true};
        Rule rule;
        rule.momentum = 0.9f;
        rule.nesterov = kind.nesterov;
        rule.momentum_correction = kind.correction;
        compress(backend, c, rule);
        REQUIRE(c.guesses[0].hit == kind.guess_is_good);
      },
      launch);
}

bool count_apply(float weight_decay, ptx::CountedLaunch& launch) {
  return count_launch(
      [&](EmulatedBackend& backend) {
        ApplyCase c({{kLarge, kLarge / 1000}}, 4);
        DgcApplyArgs rule;
        rule.momentum = 0.9f;
        rule.weight_decay = weight_decay;
        apply(backend, c, rule);
        REQUIRE(c.control.fault.kind == WireFaultKind::none);
      },
      launch);
}

// The message has so many chunks of runs, each of no zeros.
bool count_decode(int64_t chunks, ptx::CountedLaunch& launch) {
  return count_launch(
      [&](EmulatedBackend& backend) {
        const int64_t k = chunks * DgcCode::kChunk;
        const CodeCase c({{k, k}}, {WireValues::fp16, WireIndices::run16});
        decode(backend, c, std::vector<std::byte>(c.coded.size()));
      },
      launch);
}

}  // namespace

TEST_CASE("the accumulation moves 20 bytes per element, 128 bits at a time", "[dgc]") {
  const bool correction = GENERATE(true, false), nesterov = GENERATE(true, false);
  CAPTURE(correction, nesterov);
  ptx::CountedLaunch launch;
  if (!count_compress(kLarge, {.correction = correction, .nesterov = nesterov}, launch)) return;
  const ptx::Counts& phase = launch.phases[0];
  const uint64_t read = correction ? 12 : 8, written = correction ? 8 : 4;  // bytes per element
  CHECK(phase.loads_128 >= kLarge * read / 512);
  CHECK(phase.stores_128 >= kLarge * written / 512);
  CHECK(phase.loaded_sectors * kSectorBytes <= kLarge * (read + 0.7));
  CHECK(phase.stored_sectors * kSectorBytes <= kLarge * (written + 0.25));
}

TEST_CASE("dgc_compress uses no local memory before it seals the message", "[dgc]") {
  ptx::CountedLaunch launch;
  if (!count_compress(kSmall, {.guess_is_good = GENERATE(true, false)}, launch)) return;
  for (size_t i = 0; i + 1 < launch.phases.size(); ++i) CHECK(launch.phases[i].local == 0);
}

TEST_CASE("dgc_compress executes and moves no more than it did, with a good guess", "[dgc]") {
  ptx::CountedLaunch launch;
  if (!count_compress(kLarge, {}, launch)) return;
  check_phases(launch, {{"accumulate", 740251, 412785, 267827, 3272},
                        {"sort out", 14208, 9496, 23, 7},
                        {"emit", 18974, 6591, 2417, 4},
                        {"seal", 7533, 234, 529, 4}});
  REQUIRE(count_compress(kLarge, {.nesterov = true}, launch));
  check_phases(launch, {{"accumulate", 805783, 412785, 267831, 3272},
                        {"sort out", 14189, 9494, 22, 6},
                        {"emit", 17518, 6557, 2417, 4},
                        {"seal", 7533, 234, 529, 4}});
  REQUIRE(count_compress(kLarge, {.correction = false}, launch));
  check_phases(launch, {{"accumulate", 674527, 281713, 136756, 3272},
                        {"sort out", 14232, 9509, 23, 7},
                        {"emit", 18900, 6604, 1371, 4},
                        {"seal", 7533, 234, 529, 4}});
  REQUIRE(count_compress(kSmall, {}, launch));
  check_phases(launch, {{"accumulate", 11735, 2798, 1574, 84},
                        {"sort out", 1563, 295, 6, 5},
                        {"emit", 3120, 59, 17, 4},
                        {"seal", 3913, 6, 523, 4}});
}

TEST_CASE("dgc_compress executes and moves no more than it did, without a guess", "[dgc]") {
  ptx::CountedLaunch launch;
  if (!count_compress(kLarge, {.guess_is_good = false}, launch)) return;
  check_phases(launch, {{"accumulate", 499073, 405536, 266240, 548},
                        {"sort out", 2930, 4193, 4, 4},
                        {"digits 1", 594672, 131716, 0, 1050533},
                        {"digits 2", 405989, 140032, 0, 1426},
                        {"digits 3", 411210, 142080, 0, 8},
                        {"count", 424925, 149888, 4128, 4},
                        {"emit", 384599, 68031, 4176, 4},
                        {"seal", 8845, 234, 1041, 4}});
}

TEST_CASE("dgc_apply executes and moves no more than it did", "[dgc]") {
  ptx::CountedLaunch launch;
  if (!count_apply(0, launch)) return;
  check_phases(launch, {{"check", 16424, 2466, 7, 4}, {"step what was sent", 80746, 8251, 4174, 8388}});
  REQUIRE(count_apply(1e-4f, launch));
  check_phases(launch, {{"check", 16424, 2466, 7, 4}, {"step all", 872922, 265689, 262146, 4196}});
  CHECK(launch.phases.back().loads_128 >= kLarge * 8 / 512);
  CHECK(launch.phases.back().stores_128 >= kLarge * 8 / 512);
}

TEST_CASE("decoding twice as many runs reads twice as much", "[dgc]") {
  ptx::CountedLaunch once, twice;
  if (!count_decode(256, once)) return;
  REQUIRE(count_decode(512, twice));
  REQUIRE((once.phases.size() == 3 && twice.phases.size() == 3));
  CHECK(static_cast<double>(twice.phases[1].loaded_sectors) < 2.1 * static_cast<double>(once.phases[1].loaded_sectors));
}
