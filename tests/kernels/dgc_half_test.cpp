#include <catch.hpp>

#include "tensor/half.h"
#include "tests/kernels/dgc_case.h"
#include "tests/kernels/kernel_backends.h"

// Small tensors that travel dense in fp16.
using namespace dgc;
using namespace dgc::test;

namespace {

constexpr float kScale = 0.3f;  // no power of two, so that rounding a product shows

struct HalfCase {
  HalfCase() {
    std::mt19937 random(8);
    std::normal_distribution<float> normal(0, 3);
    for (auto* arena : {&gradient, &residual}) {
      for (int i = 0; i < 3000; ++i) arena->push_back(normal(random));
    }
    residual[2000] = 1e6f;   // clamped
    residual[2001] = -1e9f;  // stays whole
    residual[64] = 1e-9f;    // rounds to nothing
    gradient[64] = 0;
    residual[2002] = gradient[2002] = 3e38f;  // their sum is infinite
  }
  void run(Backend& backend, int32_t skip = 0) {
    std::vector<StepControl> controls(1);
    controls[0].skip = skip;
    std::vector<float> scales{kScale};
    const Copy table(backend, ranges);
    const Copy control(backend, controls);
    const Copy g(backend, gradient), r(backend, residual), scale(backend, scales);
    const Copy to(backend, packed);
    DgcPackHalfArgs args;
    args.dense = {table.data(), static_cast<int32_t>(ranges.size()), 1325};
    args.control = control.data();
    args.arena = g.data();
    args.residual = r.data();
    args.packed = to.data();
    args.scale = scale.data();
    backend.dgc_pack_half(args);
    r.fetch(), to.fetch();
  }

  std::vector<DgcRange> ranges{{2000, 300, 0}, {1, 1, 300}, {64, 1024, 301}};
  std::vector<float> gradient, residual;
  std::vector<uint16_t> packed = std::vector<uint16_t>(1400, 0x5555);
};

}  // namespace

TEST_CASE("dgc_pack_half sends what was held back and the gradient, and holds back what rounding takes", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  HalfCase c;
  const HalfCase before = c;
  c.run(*backend);
  std::vector<float> residual = before.residual;
  std::vector<uint16_t> packed = before.packed;
  for (const DgcRange& range : c.ranges) {
    for (int64_t i = 0; i < range.numel; ++i) {
      float& held = residual[static_cast<size_t>(range.offset + i)];
      const float x = std::fma(kScale, before.gradient[static_cast<size_t>(range.offset + i)], held);
      if (std::isinf(x)) {  // it travels, and nothing is kept that would never leave again
        packed[static_cast<size_t>(range.packed_at + i)] = float_to_half(x);
        held = 0;
        continue;
      }
      const float sent = std::fabs(x) >= 0x1p29f ? 0.f : half_to_float(float_to_half(std::clamp(x, -65504.f, 65504.f)));
      packed[static_cast<size_t>(range.packed_at + i)] = float_to_half(sent);
      held = x - sent;
      REQUIRE(double{held} + double{sent} == double{x});
    }
  }
  CHECK(c.packed == packed);
  CHECK(bits_of(c.residual) == bits_of(residual));

  HalfCase skipped = before;
  skipped.run(*backend, 1);
  CHECK((skipped.packed == before.packed && bits_of(skipped.residual) == bits_of(before.residual)));
}

TEST_CASE("dgc_sum_half adds in worker order, in fp32", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int workers = GENERATE(1, 5);
  constexpr int64_t kNumel = 1000;
  std::mt19937 random(4);
  std::vector<uint16_t> packed;
  for (int i = 0; i < workers * kNumel; ++i) packed.push_back(static_cast<uint16_t>(random() % 0x7c00));
  std::vector<float> sum(kNumel + 1, kSentinel), want = sum;
  for (size_t i = 0; i < kNumel; ++i) {
    want[i] = half_to_float(packed[i]);
    for (size_t w = 1; w < static_cast<size_t>(workers); ++w) want[i] += half_to_float(packed[w * kNumel + i]);
  }
  const Copy from(*backend, packed);
  const Copy to(*backend, sum);
  backend->dgc_sum_half({from.data(), workers, kNumel, to.data()});
  to.fetch();
  CHECK(bits_of(sum) == bits_of(want));
}
