#include <array>
#include <catch.hpp>
#include <map>
#include <optional>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

using Labels = std::vector<int32_t>;

struct CtcResult {
  double loss = 0, counted = 0, left_out = 0;
  std::vector<float> d;
};

// Streams side by side; everything in host memory.
struct CtcCase {
  int64_t steps = 0, classes = 0;
  std::vector<int32_t> lengths;  // in frames
  std::vector<Labels> labels;
  std::vector<float> logits = {};  // [steps, streams, classes]; random where empty
  int64_t frames_per_step = 1;
  float gradient_scale = 1;
  DType type = DType::f32;

  int64_t streams() const { return static_cast<int64_t>(lengths.size()); }
  float& logit(int64_t t, int64_t stream, int64_t c) {
    return logits[static_cast<size_t>((t * streams() + stream) * classes + c)];
  }

  CtcResult run(Backend& backend, const StepControl* control = nullptr) const {
    size_t most = 0;
    for (const Labels& l : labels) most = std::max(most, l.size());
    std::vector<int32_t> rows;
    for (const Labels& l : labels) {
      rows.push_back(static_cast<int32_t>(l.size()));
      rows.insert(rows.end(), l.begin(), l.end());
      rows.resize(rows.size() + most - l.size(), 7777);  // nobody reads these
    }
    const OnDevice x(backend, logits, type), d(backend, std::vector<float>(logits.size(), 9.f), type);
    const ValuesOnDevice<int32_t> length(backend, lengths), label(backend, rows);
    const ValuesOnDevice<double> stats(backend, {7, 7, 7});
    const Shape label_shape{streams(), static_cast<int64_t>(1 + most)};
    backend.ctc_loss({.steps = steps,
                      .streams = streams(),
                      .classes = classes,
                      .most_labels = static_cast<int64_t>(most),
                      .frames_per_step = frames_per_step,
                      .gradient_scale = gradient_scale,
                      .control = control},
                     x, {length.data(), {streams()}, DType::i32}, {label.data(), label_shape, DType::i32}, d,
                     stats.data());
    const auto sums = stats.host();
    return {sums[0], sums[1], sums[2], d.host()};
  }
};

CtcCase with_random_logits(CtcCase data, unsigned seed, float size = 2) {
  data.logits = random_floats(data.steps * data.streams() * data.classes, seed, -size, size);
  return data;
}

// By the definition: of every path (one class per step), the probability, added up over those that spell the labels
// once repeats and then blanks are taken out. No value where no path spells them.
std::optional<double> loss_by_enumeration(CtcCase data, int64_t stream) {
  const int64_t steps = data.lengths[static_cast<size_t>(stream)];
  std::vector<std::vector<double>> p(static_cast<size_t>(steps));
  for (int64_t t = 0; t < steps; ++t) {
    double sum = 0;
    for (int64_t c = 0; c < data.classes; ++c) sum += std::exp(double{data.logit(t, stream, c)});
    for (int64_t c = 0; c < data.classes; ++c) {
      p[static_cast<size_t>(t)].push_back(std::exp(double{data.logit(t, stream, c)}) / sum);
    }
  }
  double total = 0;
  std::vector<int32_t> path(static_cast<size_t>(steps));
  while (true) {
    Labels spelled;
    double probability = 1;
    for (size_t t = 0; t < path.size(); ++t) {
      probability *= p[t][static_cast<size_t>(path[t])];
      if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) spelled.push_back(path[t]);
    }
    if (spelled == data.labels[static_cast<size_t>(stream)]) total += probability;
    size_t t = 0;
    while (t < path.size() && ++path[t] == data.classes) path[t++] = 0;
    if (t == path.size()) break;
  }
  if (total == 0) return std::nullopt;
  return -std::log(total);
}

// Largest error of the gradient against central differences of the loss.
double gradient_error(Backend& backend, CtcCase data) {
  const std::vector<float> d = data.run(backend).d;
  double worst = 0;
  for (size_t i = 0; i < d.size(); ++i) {
    const float keep = data.logits[i], eps = 1e-2f;
    data.logits[i] = keep + eps;
    const double up = data.run(backend).loss;
    data.logits[i] = keep - eps;
    const double down = data.run(backend).loss;
    data.logits[i] = keep;
    worst = std::fmax(worst, std::fabs((up - down) / (2 * double{eps}) - double{d[i]}));
  }
  return worst;
}

}  // namespace

TEST_CASE("CTC by hand", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  // One step, even odds: the label is one of four classes.
  const CtcCase one{.steps = 1, .classes = 4, .lengths = {1}, .labels = {{2}}, .logits = {5, 5, 5, 5}};
  const CtcResult result = one.run(*backend);
  CHECK(result.loss == Approx(std::log(4.0)));
  CHECK(worst_error(result.d, std::vector<double>{0.25, 0.25, -0.75, 0.25}) < 1e-6);
  // Two steps, two classes: a, aa, a- and -a; only -- is another word.
  const CtcCase two{.steps = 2, .classes = 2, .lengths = {2}, .labels = {{1}}, .logits = {0, 0, 0, 0}};
  CHECK(two.run(*backend).loss == Approx(-std::log(0.75)));
  // No label: all blanks.
  const CtcCase none{.steps = 2, .classes = 2, .lengths = {2}, .labels = {{}}, .logits = {0, 0, 0, 0}};
  CHECK(none.run(*backend).loss == Approx(-std::log(0.25)));
  CHECK(worst_error(none.run(*backend).d, std::vector<double>{-0.5, 0.5, -0.5, 0.5}) < 1e-6);
  // A double letter needs a blank between: one path of 27.
  const CtcCase twice{.steps = 3, .classes = 3, .lengths = {3}, .labels = {{1, 1}}, .logits = zeros(9)};
  CHECK(twice.run(*backend).loss == Approx(std::log(27.0)));
}

TEST_CASE("CTC is the sum over all alignments", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t steps = GENERATE(1, 2, 3, 5);
  const auto labels = GENERATE(Labels{}, Labels{1}, Labels{2, 1}, Labels{1, 1}, Labels{1, 2, 1}, Labels{2, 2, 1},
                               Labels{1, 1, 1}, Labels{1, 2, 2, 1});
  CAPTURE(backend->name(), steps, labels);
  CtcCase data{.steps = steps, .classes = 3, .lengths = {static_cast<int32_t>(steps)}, .labels = {labels}};
  data = with_random_logits(data, 3);
  const CtcResult result = data.run(*backend);
  const auto truth = loss_by_enumeration(data, 0);
  CHECK(result.counted == (truth ? 1 : 0));
  CHECK(result.left_out == (truth ? 0 : 1));
  CHECK(result.loss == Approx(truth.value_or(0)).epsilon(1e-5).margin(1e-6));
  if (truth) CHECK(gradient_error(*backend, data) < 1e-3);
  if (!truth) CHECK(result.d == zeros(steps * 3));
}

TEST_CASE("CTC of streams of unequal lengths is that of each alone", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  const std::vector<Labels> labels = {{1, 2, 3}, {3}, {1, 1, 2}, {}, {2, 2}, {1}};
  CtcCase all{.steps = 6, .classes = 4, .lengths = {6, 2, 3, 5, 3, 0}, .labels = labels};
  all = with_random_logits(all, 5);
  const CtcResult together = all.run(*backend);
  CHECK(together.counted == 4);
  CHECK(together.left_out == 1);  // 1, 1, 2 in three steps; the last stream is not there at all
  double sum = 0;
  std::vector<float> expected(together.d.size());
  for (int64_t s = 0; s < all.streams(); ++s) {
    const auto own = static_cast<size_t>(s);
    CtcCase alone{.steps = all.lengths[own], .classes = 4, .lengths = {all.lengths[own]}, .labels = {labels[own]}};
    if (alone.steps == 0) continue;
    for (int64_t t = 0; t < alone.steps; ++t) {
      for (int64_t c = 0; c < 4; ++c) alone.logits.push_back(all.logit(t, s, c));
    }
    const CtcResult result = alone.run(*backend);
    sum += result.loss;
    for (int64_t t = 0; t < alone.steps; ++t) {
      for (int64_t c = 0; c < 4; ++c) {
        expected[static_cast<size_t>((t * all.streams() + s) * 4 + c)] = result.d[static_cast<size_t>(t * 4 + c)];
      }
    }
  }
  CHECK(together.loss == Approx(sum).epsilon(1e-6));
  CHECK(worst_error(together.d, expected) < 1e-6);

  // What lies behind a stream's end does not matter, be it a NaN.
  CtcCase dirty = all;
  for (int64_t c = 0; c < 4; ++c) dirty.logit(2, 1, c) = NAN;
  CHECK(dirty.run(*backend).d == together.d);
  // Lengths count frames: twice as many, two to a step, are the same; so is one less, rounded up.
  CtcCase frames = all;
  frames.frames_per_step = 2;
  frames.lengths = {12, 3, 5, 10, 6, 0};
  CHECK(frames.run(*backend).d == together.d);
}

TEST_CASE("CTC of long utterances keeps its digits", "[kernels]") {
  const auto factory = GENERATE(from_range(kernel_backends()));
  const auto backend = factory.make();
  const bool emulated = backend->name() == "cuda-emulated";
  CAPTURE(backend->name());
  const int32_t steps = emulated ? 60 : 1500, count = emulated ? 25 : 500;
  Labels labels;
  for (int32_t i = 0; i < count; ++i) labels.push_back(1 + i * i % 28);
  CtcCase data{.steps = steps, .classes = 29, .lengths = {steps}, .labels = {labels}};
  data = with_random_logits(data, 7, 6);
  const CtcResult result = data.run(*backend);
  REQUIRE(result.counted == 1);

  // The same recursion in long double, where the probability of a path of this length is still a number.
  const auto states = static_cast<size_t>(2 * count + 1);
  std::vector<long double> before(states), now(states);
  for (int64_t t = 0; t < steps; ++t) {
    long double sum = 0;
    for (int64_t c = 0; c < 29; ++c) sum += std::exp(static_cast<long double>(data.logit(t, 0, c)));
    for (size_t s = 0; s < states; ++s) {
      const int32_t label = s % 2 == 0 ? 0 : labels[s / 2];
      long double from = t == 0 ? (s < 2 ? 1 : 0) : before[s];
      if (t > 0 && s >= 1) from += before[s - 1];
      if (t > 0 && s % 2 == 1 && s >= 3 && label != labels[s / 2 - 1]) from += before[s - 2];
      now[s] = from * std::exp(static_cast<long double>(data.logit(t, 0, label))) / sum;
    }
    std::swap(before, now);
  }
  const auto truth = static_cast<double>(-std::log(before[states - 1] + before[states - 2]));
  REQUIRE(std::isfinite(truth));
  CHECK(result.loss == Approx(truth).epsilon(1e-6));
  // In each step the shares of all states add up to one, so the gradient's sum over classes is 0.
  double worst = 0;
  for (int64_t t = 0; t < steps; ++t) {
    double sum = 0;
    for (int64_t c = 0; c < 29; ++c) sum += double{result.d[static_cast<size_t>(t * 29 + c)]};
    worst = std::fmax(worst, std::fabs(sum));
  }
  CHECK(worst < 1e-3);
}

TEST_CASE("CTC's gradient is scaled, and the same bits in every run", "[kernels]") {
  const auto factory = GENERATE(from_range(kernel_backends()));
  CtcCase data{.steps = 9, .classes = 5, .lengths = {9, 4, 7}, .labels = {{1, 2, 2}, {4}, {3, 1, 4, 1}}};
  data = with_random_logits(data, 9);
  const auto backend = factory.make();
  const CtcResult plain = data.run(*backend), again = data.run(*factory.make());
  CHECK(plain.d == again.d);
  CHECK(plain.loss == again.loss);
  StepControl host{};
  host.loss_scale = 8;
  const ValuesOnDevice<StepControl> control(*backend, {host});
  data.gradient_scale = 0.25f;
  const CtcResult scaled = data.run(*backend, control.data());
  auto twice = plain.d;
  for (float& d : twice) d *= 2;
  CHECK(worst_error(scaled.d, twice) < 1e-6);
  CHECK(scaled.loss == plain.loss);
}

TEST_CASE("CTC of logits that are not finite is not finite", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const float strange = GENERATE(NAN, INFINITY);
  CtcCase data{.steps = 3, .classes = 3, .lengths = {3, 3}, .labels = {{1}, {2}}};
  data = with_random_logits(data, 11);
  data.logit(1, 0, 2) = strange;
  const CtcResult result = data.run(*backend);
  CHECK(!std::isfinite(result.loss));
  CHECK(result.counted == 2);
  CHECK(std::isnan(result.d[0]));
  CHECK(std::isfinite(result.d[3]));  // the other stream's
}

TEST_CASE("a label that is no class is refused, on a GPU by a loss that is NaN", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int32_t label = GENERATE(0, 3, -1);
  CtcCase data{.steps = 3, .classes = 3, .lengths = {3}, .labels = {{1, label}}};
  data = with_random_logits(data, 13);
  if (backend->name() == "cpu") {
    CHECK_THROWS_AS(data.run(*backend), InternalError);
    return;
  }
  const CtcResult result = data.run(*backend);
  CHECK(std::isnan(result.loss));
  CHECK(std::isnan(result.d[0]));
}

TEST_CASE("CTC in 16 bits computes in fp32 and rounds once", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const auto type = GENERATE(DType::f16, DType::bf16);
  CtcCase data{.steps = 5, .classes = 4, .lengths = {5}, .labels = {{1, 3}}};
  data = with_random_logits(data, 15);
  data.logits = OnDevice(*backend, data.logits, type).host();
  const CtcResult exact = data.run(*backend);
  data.type = type;
  const CtcResult rounded = data.run(*backend);
  CHECK(rounded.loss == exact.loss);
  CHECK(worst_error(rounded.d, exact.d) < rounding(type));
}
