#include <catch.hpp>

#include "optim/ordered_reduce.h"
#include "tests/optim/on_backend.h"
#include "tests/optim/reference.h"

using namespace dgc;
using namespace dgc::test;

namespace {

constexpr double kTolerance = 2e-5;  // fp32 against double after some steps; the weights are of order 1
constexpr int kSteps = 12;

double warming_up(uint64_t step) { return step < 4 ? 0.75 : 0.99; }

ClusterOptions cluster_of(const Reference& r) {
  ClusterOptions options;
  options.local_workers = r.workers;
  options.steps = kSteps;
  options.lr = static_cast<float>(r.lr);
  options.sparsity = warming_up;
  SgdOptions sgd;
  sgd.momentum = r.momentum;
  sgd.weight_decay = r.weight_decay;
  sgd.nesterov = r.nesterov;
  sgd.clip_norm = r.clip_norm;
  DgcOptions dgc;
  dgc.sgd = sgd;
  dgc.momentum_correction = r.correction;
  dgc.factor_masking = r.masking;
  dgc.masked_momentum = r.momentum_sent ? MaskedMomentum::sent : MaskedMomentum::dropped;
  if (r.small_tensors_sparsity) {
    dgc.small_tensors = SmallTensors::sparse;
    dgc.small_tensors_sparsity = *r.small_tensors_sparsity;
  }
  if (r.compress) options.make = [dgc](const OptimizerContext& c) { return make_dgc(c, dgc); };
  if (!r.compress) options.make = [sgd](const OptimizerContext& c) { return make_sgd(c, sgd); };
  return options;
}

Reference full() {
  Reference r;
  r.workers = 3;
  r.momentum = 0.9;
  r.weight_decay = 0.01;
  r.nesterov = true;
  r.clip_norm = 12.0;
  return r;
}

}  // namespace

TEST_CASE("sgd is PyTorch's momentum SGD on the mean gradient", "[optim]") {
  Reference r = full();
  r.compress = false;
  r.workers = GENERATE(1, 4);
  r.nesterov = GENERATE(true, false);
  r.weight_decay = GENERATE(0.0, 0.01);
  if (GENERATE(true, false)) r.clip_norm.reset();
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, r.workers, r.nesterov, r.weight_decay, r.clip_norm.has_value());
  const auto got = run_cluster(on(backend, cluster_of(r)));
  CHECK(worst_difference(got, r.run(kSteps, warming_up)) < kTolerance);
}

TEST_CASE("dgc is the paper's algorithm, with every switch", "[optim]") {
  Reference r = full();
  r.workers = GENERATE(1, 3);
  r.nesterov = GENERATE(true, false);
  r.correction = GENERATE(true, false);
  r.masking = GENERATE(true, false);
  r.momentum_sent = r.correction && r.masking && GENERATE(true, false);
  r.weight_decay = GENERATE(0.0, 0.01);
  if (GENERATE(true, false)) r.small_tensors_sparsity = 0.9;
  CAPTURE(r.workers, r.nesterov, r.correction, r.masking, r.weight_decay, r.small_tensors_sparsity.has_value());
  const auto got = run_cluster(cluster_of(r));
  CHECK(worst_difference(got, r.run(kSteps, warming_up)) < kTolerance);
}

TEST_CASE("every backend gives the processor's bits, with every switch", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  Reference r = full();
  r.workers = 1;
  r.nesterov = GENERATE(true, false);
  r.correction = GENERATE(true, false);
  r.masking = GENERATE(true, false);
  r.momentum_sent = r.correction && r.masking && GENERATE(true, false);
  if (GENERATE(true, false)) r.small_tensors_sparsity = 0.9;
  CAPTURE(backend.name, r.nesterov, r.correction, r.masking, r.small_tensors_sparsity.has_value());
  ClusterOptions options = cluster_of(r);
  options.ranks = 2;
  options.steps = 6;
  CHECK((run_cluster(on(backend, options)) == run_cluster(options)));
}

TEST_CASE("where all is sent in every step, masked momentum that is sent makes plain steps at lr / (1 - momentum)") {
  Reference r = full();
  r.nesterov = false;
  r.weight_decay = 0;
  r.lr = 0.01;
  r.small_tensors_sparsity = 0;
  r.momentum_sent = true;
  const auto everything = [](uint64_t) { return 0.0; };
  ClusterOptions options = cluster_of(r);
  options.sparsity = everything;
  Reference plain = r;
  plain.lr = r.lr / (1 - r.momentum);
  plain.momentum = 0;
  CHECK(worst_difference(run_cluster(options), plain.run(kSteps, everything)) < kTolerance);
}

TEST_CASE("each part of dgc matters: without it the result is another", "[optim]") {
  const auto got = run_cluster(cluster_of(full()));
  REQUIRE(worst_difference(got, full().run(kSteps, warming_up)) < kTolerance);
  Reference r = full();
  std::function<double(uint64_t)> sparsity = warming_up;
  SECTION("momentum") { r.momentum = 0; }
  SECTION("Nesterov") { r.nesterov = false; }
  SECTION("momentum correction") { r.correction = false; }
  SECTION("factor masking") { r.masking = false; }
  SECTION("dropping what is masked") { r.momentum_sent = true; }
  SECTION("clipping") { r.clip_norm.reset(); }
  SECTION("weight decay") { r.weight_decay = 0; }
  SECTION("compression") { r.compress = false; }
  SECTION("warm-up") {
    sparsity = [](uint64_t) { return 0.99; };
  }
  CHECK(worst_difference(got, r.run(kSteps, sparsity)) > 100 * kTolerance);
}

TEST_CASE("an optimizer keeps nothing that it does not need", "[optim]") {
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  SECTION("a momentum of 0") {
    SgdOptions options;
    CHECK(make_sgd({*backend, *communicator, small_layout(), 1}, options)->state().empty());
    options.momentum = 0.5;
    CHECK(make_sgd({*backend, *communicator, small_layout(), 1}, options)->state().size() == 1);
  }
  SECTION("dgc: u without a momentum, and momentum that decays nothing") {
    DgcOptions options;
    const auto kept = [&] {
      std::string names;
      const auto optimizer = make_dgc({*backend, *communicator, small_layout(), 1}, options);
      for (const NamedState& state : optimizer->state()) names += state.name + " ";
      return names;
    };
    CHECK(kept() == "v ");
    options.sgd.weight_decay = 1e-4;
    CHECK(kept() == "momentum v ");
    options.sgd.momentum = 0.5;
    CHECK(kept() == "momentum u v ");
    options.momentum_correction = false;
    CHECK(kept() == "momentum v ");
  }
  SECTION("the sum of a single gradient") {
    float one[] = {1, 2, 3}, another[] = {4, 5, 6};
    float *const alone[] = {one}, *const two[] = {one, another};
    CHECK(OrderedReduce(*backend, *communicator, 1, 3, MemoryUse::other).run(alone) == one);
    OrderedReduce reduce(*backend, *communicator, 2, 3, MemoryUse::other);
    const float* const sum = reduce.run(two);
    CHECK(std::vector<float>(sum, sum + 3) == std::vector<float>{5, 7, 9});
    CHECK(one[0] == 1);
  }
}

TEST_CASE("keeping 100 % without masking is dense momentum SGD", "[optim]") {
  Reference r = full();
  r.workers = GENERATE(1, 4);
  r.nesterov = GENERATE(true, false);
  r.masking = false;
  if (GENERATE(true, false)) r.small_tensors_sparsity = 0;
  // With several workers the local thresholds add up to the dense one only in expectation.
  if (r.workers > 1) r.clip_norm.reset();
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, r.workers, r.nesterov, r.small_tensors_sparsity.has_value());
  ClusterOptions kept = on(backend, cluster_of(r));
  kept.sparsity = [](uint64_t) { return 0.0; };
  r.compress = false;
  const auto dense = run_cluster(cluster_of(r));
  CHECK(worst_difference(run_cluster(kept), std::vector<double>(dense.begin(), dense.end())) < kTolerance);
}

TEST_CASE("keeping 100 % with masking is plain SGD where tensors are compressed", "[optim]") {
  Reference r = full();
  r.weight_decay = 0;
  r.nesterov = false;
  r.clip_norm.reset();
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name);
  ClusterOptions kept = on(backend, cluster_of(r));
  kept.sparsity = [](uint64_t) { return 0.0; };
  const auto got = run_cluster(kept);
  r.momentum = 0;
  r.compress = false;
  const auto plain = r.run(kSteps, warming_up);
  const ParamLayout& layout = small_layout();
  for (const int tensor : {0, 2}) {
    for (int64_t e = layout.offset(tensor); e < layout.offset(tensor) + layout.numel(tensor); ++e) {
      REQUIRE(got[static_cast<size_t>(e)] == Approx(plain[static_cast<size_t>(e)]).margin(kTolerance));
    }
  }
}

TEST_CASE("workers on ranks: every layout gives the same bits", "[optim]") {
  Reference r = full();
  r.compress = GENERATE(true, false);
  r.correction = GENERATE(true, false);
  CAPTURE(r.compress, r.correction);
  ClusterOptions options = cluster_of(r);
  options.local_workers = 8;
  const auto expected = run_cluster(options);
  for (const int ranks : {2, 4, 8}) {
    CAPTURE(ranks);
    options.ranks = ranks;
    options.local_workers = 8 / ranks;
    CHECK((run_cluster(options) == expected));
  }
}

TEST_CASE("state: stopped and resumed is never stopped", "[optim]") {
  Reference r = full();
  r.compress = GENERATE(true, false);
  r.correction = GENERATE(true, false);
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, r.compress, r.correction);
  ClusterOptions options = on(backend, cluster_of(r));
  std::vector<std::vector<float>> saved;
  options.after = [&](int, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
    if (step != 5) return;
    saved.push_back(to_vector(weights));
    for (const NamedState& state : optimizer.state()) saved.push_back(to_vector(*state.arena));
  };
  const auto never_stopped = run_cluster(options);

  // A second run starts from other weights and state, and is given the saved ones after its own step 5.
  options.lr = 0.02f;
  const auto make = options.make;
  options.after = [&](int, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
    if (step != 5) return;
    size_t next = 0;
    const auto restore = [&](const Arena& arena) {
      arena.device().copy_in(arena.data(), saved.at(next++).data(), arena.bytes());
    };
    restore(weights);
    for (const NamedState& state : optimizer.state()) restore(*state.arena);
    CHECK(next == saved.size());
  };
  CHECK((run_cluster(options) != never_stopped));  // the learning rate differs ...
  options.lr = 0.1f;
  const auto noisy = options.sparsity;
  options.sparsity = [&](uint64_t step) { return step <= 5 ? 0.5 : noisy(step); };  // ... and here only the past does
  CHECK((run_cluster(options) == never_stopped));
}
