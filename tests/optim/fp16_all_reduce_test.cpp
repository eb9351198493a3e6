#include "optim/fp16_all_reduce.h"

#include <catch.hpp>

#include "tensor/half.h"
#include "tests/optim/on_backend.h"
#include "tests/optim/reference.h"

// exchange.dense_values: fp16.
using namespace dgc;
using namespace dgc::test;

namespace {

constexpr int kHalfWorkers = 4;
constexpr int kHalfSteps = 3;
constexpr float kScale = 0.25f;

float plain_gradient(int worker, uint64_t step, int64_t element) {
  return gradient_at(worker, step, element, 0) * (element % 7 == 0 ? 1e-6f : 1.f);  // some of them subnormal as halves
}

struct Sums {
  std::vector<float> last;                    // of the last step
  std::vector<std::vector<float>> residuals;  // of each worker
};

Sums on_ranks(int ranks, const BackendFactory& factory) {
  Sums sums;
  sums.residuals.resize(kHalfWorkers);
  const auto group = make_thread_communicators(ranks);
  run_ranks(group, [&](Communicator& communicator) {
    const auto backend = factory.make();
    const int local_workers = kHalfWorkers / ranks, first = communicator.rank() * local_workers;
    Fp16AllReduce reduce({*backend, communicator, small_layout(), local_workers});
    std::vector<Arena> gradients;
    std::vector<float*> pointers;
    for (int local = 0; local < local_workers; ++local) {
      gradients.emplace_back(backend->device(), small_layout());
      pointers.push_back(gradients.back().data());
    }
    const float* sum = nullptr;
    const Buffer control(backend->device(), sizeof(StepControl)), scale(backend->device(), sizeof(float));
    const StepControl usual;
    backend->device()->copy_in(control.data(), &usual, sizeof(usual));
    backend->device()->copy_in(scale.data(), &kScale, sizeof(kScale));
    for (uint64_t step = 0; step < kHalfSteps; ++step) {
      for (int local = 0; local < local_workers; ++local) {
        fill(gradients[static_cast<size_t>(local)], [&](int64_t e) { return plain_gradient(first + local, step, e); });
      }
      sum = reduce.run({pointers, scale.f32(), static_cast<const StepControl*>(control.data())});
    }
    for (int local = 0; local < local_workers; ++local) {
      sums.residuals[static_cast<size_t>(first + local)] = to_vector(reduce.residual(local));
    }
    if (communicator.rank() != ranks - 1) return;
    sums.last.resize(static_cast<size_t>(small_layout().extent()));
    backend->device()->copy_out(sums.last.data(), sum, sums.last.size() * sizeof(float));
  });
  return sums;
}

// An element's way, by the words of fp16_all_reduce.h.
Sums by_definition() {
  Sums sums;
  const auto extent = static_cast<size_t>(small_layout().extent());
  sums.last.resize(extent);
  sums.residuals.assign(kHalfWorkers, std::vector<float>(extent));
  // 1568 numbers are 784 pairs: 196 for each of four workers, 208 in whole cache lines.
  REQUIRE(extent == 1568);
  constexpr size_t kShard = 2 * 208;
  const auto round = [](float x, float& residual) {
    const float sent = half_to_float(float_to_half(x));
    residual = x - sent;
    return sent;
  };
  for (uint64_t step = 0; step < kHalfSteps; ++step) {
    for_elements(small_layout(), [&](int64_t e) {
      const auto i = static_cast<size_t>(e);
      float sum = 0;
      for (int worker = 0; worker < kHalfWorkers; ++worker) {
        float& residual = sums.residuals[static_cast<size_t>(worker)][i];
        sum += round(std::fma(kScale, plain_gradient(worker, step, e), residual), residual);
      }
      float& owners = sums.residuals[i / kShard][i];
      sums.last[i] = round(sum + owners, owners);
    });
  }
  return sums;
}

ClusterOptions cluster(SgdOptions sgd, int ranks, int local_workers, DenseValues values = DenseValues::fp16) {
  ClusterOptions options;
  options.ranks = ranks;
  options.local_workers = local_workers;
  options.steps = 6;
  options.make = [sgd, values](const OptimizerContext& context) { return make_sgd(context, sgd, values); };
  return options;
}

SgdOptions half_sgd() {
  SgdOptions sgd;
  sgd.momentum = 0.9f;
  sgd.weight_decay = 1e-3f;
  return sgd;
}

}  // namespace

TEST_CASE("halves are summed as defined, however workers are spread over ranks", "[optim]") {
  const Sums want = by_definition();
  const int ranks = GENERATE(1, 2, 4);
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, ranks);
  const Sums got = on_ranks(ranks, backend);
  CHECK((got.last == want.last));
  CHECK((got.residuals == want.residuals));
}

TEST_CASE("dense in halves: the same weights on any ranks, and nearly those of fp32", "[optim]") {
  SgdOptions sgd = half_sgd();
  if (GENERATE(true, false)) sgd.clip_norm = 2;
  std::vector<StepReport> reports;
  ClusterOptions options = cluster(sgd, 1, 4);
  options.after = [&](int, uint64_t, Optimizer&, const Arena&, const StepReport& r) { reports.push_back(r); };
  const auto alone = run_cluster(options);
  CHECK(reports[0].bytes.sent == 2 * 1556);
  CHECK(reports[0].bytes.dense == 4 * 1556);
  CHECK((run_cluster(cluster(sgd, 4, 1)) == alone));
  CHECK((run_cluster(cluster(sgd, 2, 2)) == alone));
  const auto fp32 = run_cluster(cluster(sgd, 1, 4, DenseValues::fp32));
  CHECK((alone != fp32));
  for (size_t i = 0; i < fp32.size(); ++i) REQUIRE(alone[i] == Approx(fp32[i]).margin(2e-3));
}

TEST_CASE("dense in halves: what rounding takes away arrives later", "[optim]") {
  // Far below the smallest half, 6e-8: each step sends nothing, until enough has been held back.
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  SgdOptions sgd;
  const auto optimizer = make_sgd({*backend, *communicator, small_layout(), 1}, sgd, DenseValues::fp16);
  const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
  float* const pointers[] = {gradient.data()};
  StepRecord record(*backend, *communicator, 1);
  const Stepper stepper{*optimizer, record, weights, pointers};
  for_elements(small_layout(), [&](int64_t e) { gradient.data()[e] = 1e-9f; });
  stepper.step(0, 1, 0);
  CHECK(weights.data()[0] == 0);
  for (uint64_t step = 1; step < 1000; ++step) stepper.step(step, 1, 0);
  for_elements(small_layout(), [&](int64_t e) { REQUIRE(weights.data()[e] == Approx(-1e-6).margin(3.1e-8)); });

  const auto everything = [&] {
    std::vector<std::vector<float>> all = {to_vector(weights)};
    for (const NamedState& state : optimizer->state()) all.push_back(to_vector(*state.arena));
    return all;
  };
  const auto before = everything();
  CHECK(before.size() == 2);  // weights, residual
  gradient.data()[5] = NAN;
  CHECK(stepper.step(1000, 1, 0).skipped);
  CHECK((everything() == before));
}

TEST_CASE("dense in halves: the loss scale leaves no trace", "[optim]") {
  const auto run = [](float loss_scale) {
    const auto backend = make_cpu_backend(1);
    const auto communicator = make_single_communicator();
    SgdOptions sgd = half_sgd();
    sgd.clip_norm = 3;
    const auto optimizer = make_sgd({*backend, *communicator, small_layout(), 1}, sgd, DenseValues::fp16);
    const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
    float* const pointers[] = {gradient.data()};
    StepRecord record(*backend, *communicator, 1);
    for (uint64_t step = 0; step < 4; ++step) {
      StepControl control = record.read_control();
      control.loss_scale = step % 2 == 0 ? 1 : loss_scale;
      record.restore_control(control);
      for_elements(small_layout(),
                   [&](int64_t e) { gradient.data()[e] = gradient_at(0, step, e, 0) * control.loss_scale; });
      Stepper{*optimizer, record, weights, pointers}.step(step, 0.1f, 0);
    }
    return to_vector(weights);
  };
  CHECK((run(65536) == run(1)));
}

TEST_CASE("dense in halves: stopped and resumed is never stopped", "[optim]") {
  ClusterOptions options = cluster(half_sgd(), 1, 3);
  std::vector<std::vector<float>> saved;
  options.after = [&](int, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
    if (step != 2) return;
    saved.push_back(to_vector(weights));
    for (const NamedState& state : optimizer.state()) saved.push_back(to_vector(*state.arena));
  };
  const auto never_stopped = run_cluster(options);
  REQUIRE(saved.size() == 5);
  for (size_t i = 2; i < 5; ++i) {
    CHECK(std::any_of(saved[i].begin(), saved[i].end(), [](float x) { return x != 0; }));
  }
  // A past of other steps, forgotten.
  const auto sgd = options.make;
  options.after = [&](int, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
    if (step != 2) return;
    size_t next = 0;
    const auto restore = [&](const Arena& arena) { std::ranges::copy(saved.at(next++), arena.data()); };
    for (int64_t e = 0; e < weights.extent(); ++e) weights.data()[e] = 7;
    restore(weights);
    for (const NamedState& state : optimizer.state()) restore(*state.arena);
  };
  CHECK((run_cluster(options) == never_stopped));
}
