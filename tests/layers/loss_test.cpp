#include <catch.hpp>

#include "layers/cross_entropy.h"
#include "layers/decoder.h"
#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

constexpr int64_t kRows = 11, kIn = 6, kClasses = 9;

struct Result {
  std::vector<double> stats;
  std::vector<float> dx, dw, db;
};

// A decoder on rows that lie as [1, kRows, kIn]. start: what the gradients of the parameters hold before.
struct DecoderRun {
  explicit DecoderRun(Backend& on) : backend(on) {
    for (int64_t r = 0; r < kRows; ++r) labels.push_back(static_cast<int32_t>(r * 5 % kClasses));
  }

  Backend& backend;
  std::vector<float> x = random_floats(kRows * kIn, 1), w = random_floats(kClasses * kIn, 2),
                     b = random_floats(kClasses, 3);
  std::vector<int32_t> labels;

  Result run(const Decoder& decoder, bool training, float start = 0) const {
    const OnDevice x_(backend, x), w_(backend, w), b_(backend, b), dx(backend, std::vector<float>(x.size(), 9.f));
    const OnDevice dw(backend, std::vector<float>(w.size(), start)), db(backend, std::vector<float>(b.size(), start));
    const ValuesOnDevice<int32_t> label(backend, labels);
    const ValuesOnDevice<double> stats(backend, {7, 7, 7});
    const Shape shape{1, kRows, kIn};
    const Buffer scratch(backend.device(), decoder.scratch_bytes(shape, DType::f32));
    const std::vector<ConstView> params = {w_, b_};
    const std::vector<View> dparams = {dw, db};
    LossArgs args{.backend = backend,
                  .x = {x_.view().data, shape},
                  .labels = {label.data(), {kRows}, DType::i32},
                  .params = params,
                  .scratch = {scratch.data(), {}},
                  .stats = stats.data()};
    if (training) {
      args.dx = {dx.view().data, shape};
      args.dparams = dparams;
      args.gradient_scale = 0.5f;
    }
    decoder.run(args);
    return {stats.host(), dx.host(), dw.host(), db.host()};
  }
};

}  // namespace

TEST_CASE("the decoder's gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t rows = GENERATE(0, 4);
  DecoderRun run(*backend);
  const Decoder decoder({.in = kIn, .classes = kClasses, .rows = rows});
  const Result result = run.run(decoder, true);
  const auto compare = [&](std::vector<float>& values, const std::vector<float>& analytic) {
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const float keep = values[i], eps = 1e-2f;
      values[i] = keep + eps;
      const double up = run.run(decoder, false).stats[0];
      values[i] = keep - eps;
      const double down = run.run(decoder, false).stats[0];
      values[i] = keep;
      worst = std::fmax(worst, std::fabs(0.5 * (up - down) / (2 * double{eps}) - double{analytic[i]}));
    }
    return worst;
  };
  CHECK(compare(run.x, result.dx) < 1e-4);
  CHECK(compare(run.w, result.dw) < 1e-4);
  CHECK(compare(run.b, result.db) < 1e-4);
}

TEST_CASE("how many rows the decoder takes at once does not change what comes out", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const DecoderRun run(*backend);
  const Result whole = run.run(Decoder({.in = kIn, .classes = kClasses, .rows = kRows}), true);
  for (const int64_t rows : {1, 3, 10, 100}) {
    const Decoder decoder({.in = kIn, .classes = kClasses, .rows = rows});
    const Result parts = run.run(decoder, true), evaluation = run.run(decoder, false);
    CAPTURE(rows);
    CHECK(parts.stats[0] == Approx(whole.stats[0]).epsilon(1e-6));
    CHECK(parts.stats[1] == whole.stats[1]);
    CHECK(parts.stats[2] == whole.stats[2]);
    CHECK(worst_error(parts.dx, whole.dx) < 1e-6);
    CHECK(worst_error(parts.dw, whole.dw) < 1e-6);
    CHECK(worst_error(parts.db, whole.db) < 1e-6);
    CHECK(evaluation.stats == parts.stats);
    CHECK(evaluation.dx == std::vector<float>(run.x.size(), 9.f));
    CHECK(run.run(decoder, true).dw == parts.dw);  // the same bits again
  }
}

TEST_CASE("the decoder adds to the gradients of its parameters", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const DecoderRun run(*backend);
  const Decoder decoder({.in = kIn, .classes = kClasses, .rows = 4});
  Result once = run.run(decoder, true);
  const Result added = run.run(decoder, true, 3);
  for (float& value : once.dw) value += 3;
  for (float& value : once.db) value += 3;
  CHECK(added.dx == once.dx);
  CHECK(worst_error(added.dw, once.dw) < 1e-6);
  CHECK(worst_error(added.db, once.db) < 1e-6);
}

TEST_CASE("the decoder is a linear layer and cross entropy", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const DecoderRun run(*backend);
  const OnDevice x(*backend, run.x), w(*backend, run.w), b(*backend, run.b);
  const OnDevice logits(*backend, zeros(kRows * kClasses)), linear(*backend, zeros(kRows * kClasses));
  const std::vector<ConstView> params = {w, b};
  const Decoder decoder({.in = kIn, .classes = kClasses, .rows = 4});
  decoder.logits(*backend, {x.view().data, {kRows, kIn}}, params, {logits.view().data, {kRows, kClasses}});
  backend->linear_forward({kRows, kIn, kClasses}, x, w, b, linear);
  CHECK(logits.host() == linear.host());

  const ValuesOnDevice<int32_t> label(*backend, run.labels);
  const ValuesOnDevice<double> stats(*backend, {7, 7, 7});
  CrossEntropy().run({.backend = *backend,
                      .x = {linear.view().data, {kRows, kClasses}},
                      .labels = {label.data(), {kRows}, DType::i32},
                      .params = {},
                      .scratch = {},
                      .stats = stats.data()});
  CHECK(run.run(decoder, false).stats[0] == Approx(stats.host()[0]).epsilon(1e-6));
}

TEST_CASE("logits of a network's output in 16 bits are the same numbers in fp32", "[layers]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const auto type = GENERATE(DType::f16, DType::bf16);
  const OnDevice x(*backend, {1, -2, 3.5f, 0, 0.25f, 5}, type), logits(*backend, std::vector<float>(6, 9));
  CrossEntropy().logits(*backend, {x.view().data, {2, 3}, type}, {}, {logits.view().data, {2, 3}});
  CHECK(logits.host() == x.host());
}

TEST_CASE("labels are smoothed where there are gradients, and not where a network is measured", "[layers]") {
  const auto backend = make_cpu_backend(1);
  const OnDevice x(*backend, {1, 2, 3, 0, 0, 5}), dx(*backend, zeros(6));
  const ValuesOnDevice<int32_t> label(*backend, {2, 0});
  const ValuesOnDevice<double> stats(*backend, {7, 7, 7});
  const auto loss = [&](const CrossEntropy& measured, View gradient) {
    measured.run({.backend = *backend,
                  .x = {x.view().data, {2, 3}},
                  .labels = {label.data(), {2}, DType::i32},
                  .params = {},
                  .scratch = {},
                  .stats = stats.data(),
                  .dx = gradient});
    return stats.host()[0];
  };
  const View gradient{dx.view().data, {2, 3}};
  CHECK(loss(CrossEntropy({.label_smoothing = 0.3}), {}) == loss(CrossEntropy(), {}));
  CHECK(loss(CrossEntropy({.label_smoothing = 0.3}), gradient) != loss(CrossEntropy(), gradient));
}

TEST_CASE("logits of a large vocabulary exist for some rows at a time", "[layers]") {
  const auto bytes = [](int64_t classes, int64_t rows) {
    return Decoder({.in = 8, .classes = classes}).scratch_bytes({rows, 8}, DType::f32);
  };
  CHECK(bytes(10000, 700) == 700 * 10000 * 4);            // PTB's batch at once
  CHECK(bytes(267735, 700) == size_t{128} * 267735 * 4);  // WikiText-103's by 128
  CHECK(bytes(10000, 100000) <= 64 << 20);
  CHECK(Decoder({.in = 8, .classes = 10}).scratch_bytes({3, 5, 8}, DType::f16) == 15 * 10 * 2);
}

TEST_CASE("losses say what does not fit", "[layers]") {
  const Decoder decoder({.in = 4, .classes = 7});
  CHECK(decoder.logits_shape({5, 3, 4}) == Shape{15, 7});
  CHECK_THROWS_WITH(decoder.logits_shape({5, 3}), Catch::Contains("[..., 4]") && Catch::Contains("[5, 3]"));
  CHECK_THROWS_AS(Decoder({.in = 0, .classes = 7}), UserError);
  CHECK_THROWS_AS(Decoder({.in = 4, .classes = 0}), UserError);
  CHECK(CrossEntropy().logits_shape({5, 3}) == Shape{5, 3});
  CHECK_THROWS_WITH(CrossEntropy().logits_shape({5, 3, 2}), Catch::Contains("[5, 3, 2]"));
  const auto params = decoder.params();
  REQUIRE(params.size() == 2);
  CHECK((params[0].name == "weight" && params[0].shape == Shape{7, 4}));
  CHECK((params[1].name == "bias" && params[1].shape == Shape{7} && params[1].init.value == 0));
}
