#include <catch.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "dist/wire.h"
#include "optim/dgc/layout.h"
#include "tensor/errors.h"
#include "tests/optim/on_backend.h"

// Compressing and exchanging beside the backward pass changes when things happen and nothing else: the truth is the
// same training without.
using namespace dgc;
using namespace dgc::test;

namespace {

struct OverlapVariant {
  WireFormat wire{};
  SmallTensors small_tensors = SmallTensors::dense;
  Transport transport = Transport::sparse;
  bool nesterov = true;
  bool momentum_correction = true;
  MaskedMomentum masked_momentum = MaskedMomentum::dropped;
  float weight_decay = 1e-3f;
};

// What is left at the end: the weights, and every worker's u and v, by worker.
struct Outcome {
  std::vector<float> weights;
  std::map<std::string, std::vector<float>> held;
  int skipped = 0;
  bool operator==(const Outcome&) const = default;
};

// A gradient of worker 2 is not finite in steps 1, 4 and 5; a bucket of it that is compressed late, and early ones.
float broken_gradient(int worker, uint64_t step, int64_t element, float w) {
  if (worker == 2 && step == 1 && element == 7) return std::numeric_limits<float>::infinity();
  if (worker == 2 && step == 4 && element == 1000) return std::nanf("");
  if (worker == 2 && step == 5 && element == small_layout().small_offset()) return std::nanf("");
  return gradient_at(worker, step, element, w);
}

struct Run {
  OverlapVariant variant{};
  Spread spread{1, 4};
  std::optional<int64_t> bucket_bytes;
  bool skips = false;
  bool flushes = false;
};

DgcOptions options_of(const Run& run) {
  DgcOptions dgc;
  dgc.sgd.momentum = 0.9f;
  dgc.sgd.nesterov = run.variant.nesterov;
  dgc.sgd.weight_decay = run.variant.weight_decay;
  dgc.momentum_correction = run.variant.momentum_correction;
  dgc.masked_momentum = run.variant.masked_momentum;
  dgc.wire = run.variant.wire;
  dgc.small_tensors = run.variant.small_tensors;
  dgc.small_tensors_sparsity = 0.9;
  dgc.transport = run.variant.transport;
  dgc.bucket_bytes = run.bucket_bytes;
  return dgc;
}

Outcome outcome_of(const Run& run, const BackendFactory& backend = {"cpu", [] { return make_cpu_backend(1); }}) {
  ClusterOptions options = on(backend, dgc_cluster(options_of(run), run.spread, [](uint64_t step) {
                                return step < 2 ? 0.75 : step < 4 ? 0.5 : 0.98;
                              }));
  options.steps = 9;
  if (run.skips) options.gradient = broken_gradient;
  Outcome outcome;
  options.after = [&](int rank, uint64_t step, Optimizer& optimizer, const Arena&, const StepReport& report) {
    if (rank == 0) outcome.skipped += report.skipped ? 1 : 0;
    if (step + 1 < 9) return;
    for (const NamedState& state : optimizer.state()) {
      const int worker = state.worker < 0 ? -1 : rank * run.spread.local_workers + state.worker;
      outcome.held[fmt::format("{} of {}", state.name, worker)] = to_vector(*state.arena);
    }
  };
  outcome.weights = run_cluster(options);
  return outcome;
}

constexpr int64_t kBucketEach = 1;            // its own bucket
constexpr int64_t kLargeOnes = 4 * 1230 + 4;  // fc.weight alone does not fill one
constexpr int64_t kLastLayer = 4 * 1230;      // it does

std::vector<DgcBucketLayout> cut(const ParamLayout& params, DgcLayout layout, int64_t bucket_bytes) {
  layout.bucket_bytes = bucket_bytes;
  return cut_into_buckets(params, layout);
}

}  // namespace

TEST_CASE("buckets are cut from the end, at whole tensors, and choose what the whole chooses", "[optim]") {
  const DgcOptions options{.wire = {WireValues::fp16, WireIndices::rice}};
  const DgcLayout whole = make_dgc_layout(small_layout(), options, 0.98);
  REQUIRE(whole.segments.size() == 2);
  const auto two = cut(small_layout(), whole, kLastLayer);
  REQUIRE(two.size() == 2);
  CHECK(two[0].first_param == 2);
  CHECK(two[1].first_param == 0);
  for (size_t i = 0; i < 2; ++i) {
    const DgcLayout& layout = two[i].layout;
    const DgcSegment& from = whole.segments[1 - i];
    REQUIRE(layout.segments.size() == 1);
    CHECK(layout.segments[0].offset == from.offset);
    CHECK(layout.segments[0].numel == from.numel);
    CHECK(layout.segments[0].k == from.k);
    CHECK(layout.segments[0].first_block == 0);
    CHECK(layout.segments[0].block_ends_at == 0);
    CHECK(layout.dense.empty());
    CHECK((layout.wire.format() == options.wire));
    CHECK(layout.canonical.entries() == from.k);
  }
  CHECK(cut(small_layout(), whole, kBucketEach).size() == 2);
  const auto one = cut(small_layout(), whole, kLargeOnes);
  REQUIRE(one.size() == 1);
  CHECK(one[0].first_param == 0);
  CHECK(one[0].layout.canonical.message_bytes() == whole.canonical.message_bytes());
}

TEST_CASE("what is compressed of all small tensors comes in the last bucket, behind the others", "[optim]") {
  const DgcLayout whole = make_dgc_layout(small_layout(), {.small_tensors = SmallTensors::sparse}, 0);
  REQUIRE(whole.segments.size() == 3);
  const auto buckets = cut(small_layout(), whole, kLastLayer);
  REQUIRE(buckets.size() == 2);
  REQUIRE(buckets[1].layout.segments.size() == 2);
  CHECK(buckets[1].layout.segments[0].offset == 0);
  CHECK(buckets[1].layout.segments[1].offset == small_layout().small_offset());
  CHECK(buckets[1].first_param == 0);
  const auto three = cut(small_layout(), whole, kBucketEach);  // no large one is left for it
  REQUIRE(three.size() == 3);
  CHECK(three[1].first_param == 0);
  CHECK(three[2].layout.segments[0].offset == small_layout().small_offset());

  const ParamLayout no_tensors({{"bias", {8}, {}}});
  const auto none = cut(no_tensors, make_dgc_layout(no_tensors, {}, 0), kBucketEach);
  REQUIRE(none.size() == 1);
  CHECK(none[0].layout.segments.empty());
}

TEST_CASE("overlap gives the same bits, in every format, skipped steps included", "[optim]") {
  Run run;
  run.variant.wire.values = GENERATE(WireValues::fp32, WireValues::fp16, WireValues::int8);
  run.variant.wire.indices = run.variant.wire.values == WireValues::fp32 ? WireIndices::block16 : WireIndices::rice;
  run.variant.small_tensors = GENERATE(SmallTensors::dense, SmallTensors::dense_fp16, SmallTensors::sparse);
  run.skips = GENERATE(false, true);
  CAPTURE(run.variant.wire.values, run.variant.small_tensors, run.skips);
  const Outcome truth = outcome_of(run);
  CHECK(truth.skipped == (run.skips ? 3 : 0));
  for (const int64_t bytes : {kBucketEach, kLargeOnes}) {
    for (const Spread spread : {Spread{1, 4}, Spread{4, 1}, Spread{2, 2}}) {
      CAPTURE(bytes, spread.ranks);
      run.bucket_bytes = bytes;
      run.spread = spread;
      Outcome found = outcome_of(run);
      CHECK((found == truth));
    }
  }
}

TEST_CASE("overlap gives the same bits under every rule of momentum", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  Run run;
  run.variant.nesterov = GENERATE(false, true);
  run.variant.momentum_correction = GENERATE(false, true);
  run.variant.weight_decay = GENERATE(0.f, 1e-3f);
  // All rules or none: "every backend gives the processor's bits, with every switch" has the others.
  const bool correction = run.variant.momentum_correction, decay = run.variant.weight_decay > 0;
  if (!takes_all(backend) && (run.variant.nesterov != correction || correction != decay)) return;
  if (correction && decay) run.variant.masked_momentum = MaskedMomentum::sent;
  run.skips = true;
  CAPTURE(backend.name, run.variant.nesterov, run.variant.momentum_correction, run.variant.weight_decay);
  const Outcome truth = outcome_of(run);
  run.bucket_bytes = kBucketEach;
  run.spread = {2, 2};
  CHECK((outcome_of(run, backend) == truth));
}

TEST_CASE("phases that travel as a sum are not overlapped and change no bit", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  Run run;
  run.variant.transport = Transport::automatic;  // 12 workers: dense at 75 % and 50 %
  run.variant.small_tensors = GENERATE(SmallTensors::dense, SmallTensors::dense_fp16, SmallTensors::sparse);
  run.spread = {1, 12};
  run.skips = true;
  const Outcome truth = outcome_of(run);
  run.bucket_bytes = kBucketEach;
  if (takes_all(backend)) CHECK((outcome_of(run, backend) == truth));
  run.spread = {3, 4};
  CHECK((outcome_of(run, backend) == truth));
}

TEST_CASE("every bucket counts with its own header", "[optim]") {
  Run run;
  run.bucket_bytes = kBucketEach;
  ClusterOptions options;
  options.ranks = 2;
  options.make = [&](const OptimizerContext& context) { return make_dgc(context, options_of(run)); };
  options.sparsity = [](uint64_t) { return 0.98; };
  options.after = [](int, uint64_t step, Optimizer& optimizer, const Arena&, const StepReport& report) {
    // 6 of 288 and 25 of 1230: 4 + 12 + 24 = 40 -> 48 and 4 + 52 + 100 = 156 -> 160, and 38 small ones.
    CHECK(report.bytes.sent == 48 + 48 + 48 + 160 + 4 * 38);
    const ExchangeTime time = optimizer.exchange_time().value();
    CHECK(time.steps == static_cast<int64_t>(step) + 1);
    CHECK(time.seconds > 0);
    CHECK((time.hidden >= 0 && time.hidden <= time.seconds));
  };
  run_cluster(options);
}

TEST_CASE("the time of exchanges is told in milliseconds of a step, and as the share that was hidden", "[optim]") {
  const ExchangeTime time{.steps = 4, .seconds = 2, .hidden = 0.5};
  CHECK(time.ms_per_step() == 500);
  CHECK(time.hidden_share() == 0.25);
  CHECK(std::isnan(ExchangeTime{}.ms_per_step()));
}

TEST_CASE("a flush after overlapped steps leaves nothing behind", "[optim]") {
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  const auto weights_after = [&](std::optional<int64_t> bucket_bytes) {
    Run run;
    run.variant.small_tensors = SmallTensors::dense_fp16;
    run.bucket_bytes = bucket_bytes;
    const auto optimizer = make_dgc({*backend, *communicator, small_layout(), 1}, options_of(run));
    const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
    initialize(weights, 5);
    float* const pointers[] = {gradient.data()};
    StepRecord record(*backend, *communicator, 1);
    const Stepper stepper{*optimizer, record, weights, pointers};
    const auto step = [&](uint64_t number) {
      for_elements(small_layout(), [&](int64_t e) { gradient.data()[e] = gradient_at(0, number, e, 0); });
      stepper.step(number, 0.1f, 0.98);
    };
    for (uint64_t i = 0; i < 4; ++i) step(i);
    stepper.flush(4, 0.1f);
    for (const NamedState& state : optimizer->state()) {
      if (state.name == "v") for_elements(small_layout(), [&](int64_t e) { REQUIRE(state.arena->data()[e] == 0); });
    }
    step(5);  // and on it goes
    return to_vector(weights);
  };
  CHECK((weights_after(kBucketEach) == weights_after(std::nullopt)));
}

TEST_CASE("a rank that fails ends the others' overlapped steps", "[optim]") {
  Run run;
  run.bucket_bytes = kBucketEach;
  ClusterOptions options;
  options.ranks = 3;
  options.make = [&](const OptimizerContext& context) { return make_dgc(context, options_of(run)); };
  options.gradient = [](int worker, uint64_t step, int64_t element, float w) {
    if (worker == 1 && step == 2) throw InternalError("worker 1 has lost its gradient");
    return gradient_at(worker, step, element, w);
  };
  CHECK_THROWS_WITH(run_cluster(options), Catch::Contains("worker 1 has lost its gradient"));
}

TEST_CASE("overlap and a norm over all gradients exclude each other", "[optim]") {
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  DgcOptions options;
  options.sgd.clip_norm = 1;
  options.bucket_bytes = kBucketEach;
  CHECK_THROWS_AS(make_dgc({*backend, *communicator, small_layout(), 1}, options), InternalError);
}
