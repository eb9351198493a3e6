#include <catch.hpp>
#include <map>

#include "optim/grouped.h"
#include "tests/optim/on_backend.h"

// exchange.workers_per_group: a group is one worker whose gradient is the ordered sum of its members' shares.
using namespace dgc;
using namespace dgc::test;

namespace {

ClusterOptions grouped_cluster(const DgcOptions& dgc, Spread spread) {
  return dgc_cluster(dgc, spread, [](uint64_t step) { return step < 2 ? 0.75 : step < 4 ? 0.5 : 0.98; });
}

// N workers in groups of `size`, each with its share of the group's mean gradient.
ClusterOptions grouped(const DgcOptions& dgc, int size, Spread spread) {
  ClusterOptions options = grouped_cluster(dgc, spread);
  options.gradient = [=](int worker, uint64_t step, int64_t e, float w) {
    return gradient_at(worker, step, e, w) / static_cast<float>(size);
  };
  const auto make = options.make;
  options.make = [=](const OptimizerContext& context) { return make_grouped(context, size, make); };
  return options;
}

// As many workers as groups, without groups: each has what a group adds up.
ClusterOptions as_workers(const DgcOptions& dgc, int size, int groups) {
  ClusterOptions options = grouped_cluster(dgc, {1, groups});
  options.gradient = [=](int group, uint64_t step, int64_t e, float w) {
    float sum = gradient_at(group * size, step, e, w) / static_cast<float>(size);
    for (int i = 1; i < size; ++i) sum += gradient_at(group * size + i, step, e, w) / static_cast<float>(size);
    return sum;
  };
  return options;
}

DgcOptions usual() {
  DgcOptions dgc;
  dgc.sgd.momentum = 0.9f;
  dgc.sgd.nesterov = true;
  dgc.sgd.weight_decay = 1e-3f;
  dgc.sgd.clip_norm = 10;  // of the group's gradient: bites in every step
  return dgc;
}

// What every group holds back in the end, by name and group.
using States = std::map<std::string, std::vector<float>>;
std::vector<float> run_with_states(ClusterOptions options, int members, States& states) {
  options.after = [&, local = options.local_workers](int rank, uint64_t, Optimizer& optimizer, const Arena&,
                                                     const StepReport&) {
    for (const NamedState& state : optimizer.state()) {
      const int worker = rank * local + state.worker;
      if (state.worker < 0) continue;
      const auto values = to_vector(*state.arena);
      const auto [found, is_new] = states.try_emplace(fmt::format("{} {}", state.name, worker / members), values);
      if (worker % members == 0) found->second = values;
    }
  };
  return run_cluster(options);
}

}  // namespace

TEST_CASE("groups are, bit for bit, workers with the sums of their gradients, however ranks share them", "[optim]") {
  DgcOptions dgc = usual();
  dgc.transport = GENERATE(Transport::sparse, Transport::dense);
  dgc.small_tensors = GENERATE(SmallTensors::dense, SmallTensors::dense_fp16, SmallTensors::sparse);
  dgc.small_tensors_sparsity = 0.9;
  if (dgc.transport == Transport::sparse) dgc.wire = {WireValues::fp16, WireIndices::rice};
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, dgc.transport, dgc.small_tensors);
  States workers;
  const auto truth = run_with_states(as_workers(dgc, 2, 2), 1, workers);
  for (const Spread spread : {Spread{1, 4}, Spread{4, 1}, Spread{2, 2}}) {
    if (!takes_all(backend) && spread.ranks == 1) continue;  // of the others one sums within ranks, one between them
    CAPTURE(spread.ranks);
    States groups;
    CHECK((run_with_states(on(backend, grouped(dgc, 2, spread)), 2, groups) == truth));
    CHECK((groups == workers));
  }
}

TEST_CASE("groups of three ranks, groups of several workers of several ranks, and one group of all", "[optim]") {
  const DgcOptions dgc = usual();
  const auto [size, groups] = GENERATE(table<int, int>({{3, 2}, {4, 2}, {6, 1}, {2, 3}}));
  CAPTURE(size, groups);
  const auto truth = run_cluster(as_workers(dgc, size, groups));
  const int all = size * groups;
  for (int local = 1; local <= all; ++local) {
    if (all % local != 0 || (local % size != 0 && size % local != 0)) continue;
    CAPTURE(local);
    CHECK((run_cluster(grouped(dgc, size, {all / local, local})) == truth));
  }
}

TEST_CASE("groups of one are no groups", "[optim]") {
  CHECK((run_cluster(grouped(usual(), 1, {2, 2})) == run_cluster(grouped_cluster(usual(), {1, 4}))));
}

TEST_CASE("a step tells what travels between groups and what inside of them", "[optim]") {
  ClusterOptions options = grouped(usual(), 4, {8, 1});
  options.sparsity = [](uint64_t step) { return step % 2 == 0 ? 0.75 : 0.98; };
  options.after = [&](int, uint64_t step, Optimizer&, const Arena&, const StepReport& report) {
    CHECK(report.bytes.in_group == 4 * 1556);
    CHECK(report.bytes.dense == 4 * 1556);
    // Two groups gain nothing from a dense sum, eight workers would (transport_test.cpp).
    CHECK((report.bytes.travel == Travel::sparse));
    CHECK(report.bytes.sent == (step % 2 == 0 ? 2336 : 256) + 4 * 38);
  };
  run_cluster(options);
}

TEST_CASE("finite gradients whose sum is not finite change nothing, and the step is skipped by all groups", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  ClusterOptions options = on(backend, grouped(usual(), 2, GENERATE(Spread{4, 1}, Spread{1, 4})));
  options.steps = 3;
  std::vector<float> before;
  options.gradient = [](int worker, uint64_t step, int64_t e, float w) {
    return step == 1 && e == 7 && worker >= 2 ? 3e38f : gradient_at(worker, step, e, w);
  };
  options.after = [&](int rank, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport& report) {
    CHECK(report.skipped == (step == 1));
    if (rank != 0) return;
    std::vector<float> all = to_vector(weights);
    for (const NamedState& state : optimizer.state()) {
      const std::vector<float> values = to_vector(*state.arena);
      all.insert(all.end(), values.begin(), values.end());
    }
    if (step == 1) CHECK((all == before));
    before = all;
  };
  run_cluster(options);
}

TEST_CASE("a flush sends what groups hold back, in memory that it was promised") {
  const auto backend = make_cpu_backend(1);
  const auto alone = make_single_communicator();
  DgcOptions dgc;
  dgc.sgd.momentum = 0.9;
  dgc.transport = Transport::sparse;
  const auto make = [&](const OptimizerContext& context) { return make_dgc(context, dgc); };
  const auto optimizer = make_grouped({*backend, *alone, small_layout(), 4}, 2, make);
  const Arena weights(backend->device(), small_layout());
  initialize(weights, 5);
  std::vector<Arena> gradients;
  std::vector<float*> pointers;
  for (int local = 0; local < 4; ++local) {
    gradients.emplace_back(backend->device(), small_layout());
    pointers.push_back(gradients.back().data());
  }
  StepRecord record(*backend, *alone, 4);
  const Stepper stepper{*optimizer, record, weights, pointers};
  optimizer->prepare_flush();
  const size_t peak = backend->device()->peak_bytes();
  for (uint64_t step = 0; step < 3; ++step) {
    for (int local = 0; local < 4; ++local) {
      fill(gradients[static_cast<size_t>(local)], [&](int64_t e) { return gradient_at(local, step, e, 0); });
    }
    stepper.step(step, 0.1f, 0.98);
  }
  stepper.flush(3, 0.1f);
  CHECK(backend->device()->peak_bytes() < peak + 1000);  // but for tables; a flush's messages are 10 times as large
  int held = 0;
  for (const NamedState& state : optimizer->state()) {
    if (state.name != "v") continue;
    for (int64_t e = 0; e < small_layout().small_offset(); ++e) held += state.arena->data()[e] != 0 ? 1 : 0;
  }
  CHECK(held == 0);
}
