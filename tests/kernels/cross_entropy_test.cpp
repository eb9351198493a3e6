#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

struct CrossEntropyResult {
  std::vector<double> stats;
  std::vector<float> gradient;
};

CrossEntropyResult run(Backend& backend, int64_t classes, const std::vector<float>& logits,
                       const std::vector<int32_t>& labels, float scale, DType type = DType::f32) {
  const OnDevice x(backend, logits, type), dx(backend, logits, type);
  const ValuesOnDevice<double> stats(backend, {7, 7, 7});
  const ValuesOnDevice<int32_t> label(backend, labels);
  const auto rows = static_cast<int64_t>(labels.size());
  backend.softmax_cross_entropy({rows, classes, scale}, x, {label.data(), {rows}, DType::i32}, dx, stats.data());
  return {stats.host(), dx.host()};
}

}  // namespace

TEST_CASE("equal logits cost log(classes), and of them the first ranks first", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto result = run(*backend, 4, {0, 0, 0, 0, 1, 1, 1, 1}, {2, 0}, 0.5f);
  CHECK(result.stats[0] == Approx(2 * std::log(4.0)));
  CHECK(result.stats[1] == 1);
  CHECK(result.stats[2] == 2);  // of four classes every one is in the top five
  const std::vector<double> expected{0.125, 0.125, -0.375, 0.125, -0.375, 0.125, 0.125, 0.125};
  CHECK(worst_error(result.gradient, expected) < 1e-7);
}

TEST_CASE("a label ranks behind equal scores of classes before it, and without a number behind all", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t classes = 40;
  CAPTURE(backend->name());
  for (int32_t label = 0; label < classes; ++label) {
    std::vector<float> logits(classes, -1);
    for (size_t c = 0; c < logits.size(); c += 3) logits[c] = 2;
    const auto better = logits[static_cast<size_t>(label)] == 2 ? label / 3 : 14 + label - (label + 2) / 3;
    const auto result = run(*backend, classes, logits, {label}, 1);
    CHECK(result.stats[1] == (better == 0 ? 1 : 0));
    CHECK(result.stats[2] == (better < 5 ? 1 : 0));
    logits[static_cast<size_t>(label)] = NAN;
    CHECK(run(*backend, classes, logits, {label}, 1).stats[2] == 0);
  }
}

TEST_CASE("cross entropy matches its formula in double", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
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
      above += c < label ? x[c] >= x[label] : x[c] > x[label];
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

TEST_CASE("label smoothing matches its formula in double", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t rows = 5, classes = GENERATE(2, 10, 1000);
  const double smoothing = GENERATE(0.1, 0.9);
  CAPTURE(backend->name(), classes, smoothing);
  const auto logits = random_floats(rows * classes, 1, -4, 4);
  const std::vector<int32_t> labels = {0, 1, 1, 0, 1};
  double loss = 0;
  std::vector<double> gradient;
  for (int64_t r = 0; r < rows; ++r) {
    const float* const x = logits.data() + r * classes;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(x[c]));
    for (int64_t c = 0; c < classes; ++c) {
      const double target =
          smoothing / static_cast<double>(classes) + (c == labels[static_cast<size_t>(r)] ? 1 - smoothing : 0);
      loss -= target * (static_cast<double>(x[c]) - std::log(sum));
      gradient.push_back((std::exp(static_cast<double>(x[c])) / sum - target) * 0.25);
    }
  }
  const OnDevice x(*backend, logits), dx(*backend, logits);
  const ValuesOnDevice<double> stats(*backend, {7, 7, 7});
  const ValuesOnDevice<int32_t> label(*backend, labels);
  backend->softmax_cross_entropy(
      {.rows = rows, .classes = classes, .gradient_scale = 0.25f, .smoothing = static_cast<float>(smoothing)}, x,
      {label.data(), {rows}, DType::i32}, dx, stats.data());
  CHECK(stats.host()[0] == Approx(loss).epsilon(1e-6));
  CHECK(worst_error(dx.host(), gradient) < 1e-6);
}

TEST_CASE("cross entropy in 16 bits has fp32 statistics and a rounded gradient", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const DType type = GENERATE(DType::f16, DType::bf16);
  const int64_t rows = 5, classes = GENERATE(3, 257);
  const auto logits = OnDevice(*backend, random_floats(rows * classes, 1, -4, 4), type).host();
  const std::vector<int32_t> labels{0, 1, 2, 1, 0};
  const auto narrow = run(*backend, classes, logits, labels, 0.2f, type);
  const auto wide = run(*make_cpu_backend(1), classes, logits, labels, 0.2f);
  CHECK(narrow.stats[0] == Approx(wide.stats[0]).epsilon(1e-6));
  CHECK(narrow.stats[1] == wide.stats[1]);
  CHECK(narrow.stats[2] == wide.stats[2]);
  CHECK(worst_error(narrow.gradient, wide.gradient) < 0.2 * rounding(type));
}

TEST_CASE("the loss scale multiplies the gradient, and logits may be overwritten by it", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const ValuesOnDevice<StepControl> control(*backend, {{.loss_scale = 1024}});
  const OnDevice x(*backend, {0, 0, 0, 0});
  const ValuesOnDevice<double> stats(*backend, {7, 7, 7});
  const ValuesOnDevice<int32_t> label(*backend, {2});
  const ConstView labels(label.data(), {1}, DType::i32);
  backend->softmax_cross_entropy({1, 4, 0.5f, control.data()}, x, labels, x, stats.data());
  CHECK(x.host() == std::vector<float>{128, 128, -384, 128});
  CHECK(stats.host()[0] == Approx(std::log(4.0)));  // the loss itself is not scaled
}

TEST_CASE("rows may come in parts: the statistics go on from those before", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t rows = 12, classes = 40;
  const auto logits = random_floats(rows * classes, 1, -4, 4);
  std::vector<int32_t> labels;
  for (int32_t r = 0; r < rows; ++r) labels.push_back(r * 3);
  const auto whole = run(*backend, classes, logits, labels, 0.25f);

  const OnDevice x(*backend, logits);
  const ValuesOnDevice<int32_t> label(*backend, labels);
  const ValuesOnDevice<double> stats(*backend, {7, 7, 7});
  for (const auto& [first, count] : {std::pair{0, 5}, std::pair{5, 6}, std::pair{11, 1}}) {
    const ConstView part(x.from(first * classes).data, {count, classes}),
        own(label.data() + first, {count}, DType::i32);
    backend->softmax_cross_entropy({.rows = count, .classes = classes, .before = first == 0 ? nullptr : stats.data()},
                                   part, own, {}, stats.data());
  }
  CHECK(stats.host()[0] == Approx(whole.stats[0]).epsilon(1e-14));
  CHECK(stats.host()[1] == whole.stats[1]);
  CHECK(stats.host()[2] == whole.stats[2]);
}

TEST_CASE("logits of any size and none: an exponent that underflows is 0", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const float far = GENERATE(-1000.f, -INFINITY);
  const auto result = run(*backend, 3, {far, 0, 0, /**/ NAN, 0, 0}, {1, 1}, 1);
  CHECK(result.gradient[0] == 0);
  CHECK(result.gradient[1] == -0.5f);
  for (size_t i = 3; i < 6; ++i) CHECK(std::isnan(result.gradient[i]));
}

TEST_CASE("the statistics do not need a gradient", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice x(*backend, {5, 0, 0, 5});
  const ValuesOnDevice<double> stats(*backend, {7, 7, 7});
  const ValuesOnDevice<int32_t> label(*backend, {0, 0});
  backend->softmax_cross_entropy({2, 2}, x, {label.data(), {2}, DType::i32}, {}, stats.data());
  CHECK(stats.host()[1] == 1);
  CHECK(stats.host()[2] == 2);
}

TEST_CASE("a label that is no class is refused, on a GPU by a loss and a gradient that are NaN", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int32_t label = GENERATE(2, -1);
  if (backend->name() == "cpu") {
    CHECK_THROWS_AS(run(*backend, 2, {0, 0}, {label}, 1), InternalError);
    return;
  }
  const auto result = run(*backend, 2, {3, 0, 0, 0}, {0, label}, 1);
  CHECK(std::isnan(result.stats[0]));
  CHECK(result.stats[1] == 1);
  CHECK(result.stats[2] == 1);
  CHECK(std::isfinite(result.gradient[0]));
  CHECK(std::isnan(result.gradient[2]));
}
