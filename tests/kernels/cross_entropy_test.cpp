#include <catch2/catch.hpp>

#include "tests/backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

struct Result {
  std::vector<float> stats, gradient;
};

Result run(Backend& backend, int64_t classes, const std::vector<float>& logits, const std::vector<int32_t>& labels,
           float scale) {
  const OnDevice x(backend, logits), dx(backend, logits), stats(backend, {7, 7, 7});
  const Buffer label(backend.device(), labels.size() * sizeof(int32_t));
  label.device().copy_in(label.data(), labels.data(), label.bytes());
  const auto rows = static_cast<int64_t>(labels.size());
  backend.softmax_cross_entropy({rows, classes, scale}, x, {label.data(), {rows}, DType::i32}, dx, stats);
  return {stats.host(), dx.host()};
}

}  // namespace

TEST_CASE("equal logits cost log(classes) and rank last among ties", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto result = run(*backend, 4, {0, 0, 0, 0, 1, 1, 1, 1}, {2, 0}, 0.5f);
  CHECK(result.stats[0] == Approx(2 * std::log(4.0)));
  CHECK(result.stats[1] == 0);  // a tie is not a win
  CHECK(result.stats[2] == 2);  // of four classes every one is in the top five
  const std::vector<double> expected{0.125, 0.125, -0.375, 0.125, -0.375, 0.125, 0.125, 0.125};
  CHECK(worst_error(result.gradient, expected) < 1e-7);
}

TEST_CASE("cross entropy matches its formula in double", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const int64_t rows = GENERATE(1, 9, 33), classes = GENERATE(2, 10, 1000);
  const float offset = GENERATE(0.f, 500.f, -500.f);  // exp(500) overflows: a constant must not matter
  CAPTURE(backend->name(), rows, classes, offset);
  auto logits = random_floats(rows * classes, 1, -4, 4);
  for (float& x : logits) x += offset;
  std::vector<int32_t> labels;
  for (int64_t r = 0; r < rows; ++r) labels.push_back(static_cast<int32_t>(r * 7 % classes));

  double loss = 0, first = 0, top5 = 0;
  std::vector<double> gradient;
  for (int64_t r = 0; r < rows; ++r) {
    const float* const x = logits.data() + r * classes;
    const int64_t label = labels[static_cast<size_t>(r)];
    double sum = 0;
    int64_t above = 0;
    for (int64_t c = 0; c < classes; ++c) {
      sum += std::exp(static_cast<double>(x[c]) - offset);
      above += c != label && x[c] >= x[label];
    }
    for (int64_t c = 0; c < classes; ++c) {
      gradient.push_back((std::exp(static_cast<double>(x[c]) - offset) / sum - (c == label)) * 0.25);
    }
    loss += std::log(sum) - (static_cast<double>(x[label]) - offset);
    first += above == 0;
    top5 += above < 5;
  }
  const auto result = run(*backend, classes, logits, labels, 0.25f);
  CHECK(result.stats[0] == Approx(loss).epsilon(1e-6));
  CHECK(result.stats[1] == first);
  CHECK(result.stats[2] == top5);
  CHECK(worst_error(result.gradient, gradient) < 1e-6);
}

TEST_CASE("cross entropy refuses a label that is no class", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  if (backend->name() != "cpu") {
    WARN("skipped on " << backend->name() << ": only the host can look at a label without waiting for the device");
    return;
  }
  CHECK_THROWS_AS(run(*backend, 2, {0, 0}, {2}, 1), InternalError);
  CHECK_THROWS_AS(run(*backend, 2, {0, 0}, {-1}, 1), InternalError);
}
