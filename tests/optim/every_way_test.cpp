// Every way of exchange, under the invariants that hold for all of them.
#include <catch.hpp>
#include <map>

#include "optim/grouped.h"
#include "tests/optim/on_backend.h"

using namespace dgc;
using namespace dgc::test;

namespace {

using Make = std::function<std::unique_ptr<Optimizer>(const OptimizerContext&)>;

struct Way {
  std::string name;
  Make make;
  int members = 1;                // workers of a group
  bool rounds_gradients = false;  // before momentum, which then works on the rounding error as well
};

// `rule` says all but how the gradient travels.
std::vector<Way> ways_of(const DgcOptions& rule) {
  const auto dgc = [&](DgcOptions options) -> Make {
    options.sgd = rule.sgd;
    options.factor_masking = rule.factor_masking;
    options.small_tensors_sparsity = rule.small_tensors_sparsity;
    return [=](const OptimizerContext& context) { return make_dgc(context, options); };
  };
  const auto dense = [&](DenseValues values) -> Make {
    return [sgd = rule.sgd, values](const OptimizerContext& context) { return make_sgd(context, sgd, values); };
  };
  const WireFormat coded{WireValues::int8, WireIndices::rice};
  const Make sparse = dgc({.transport = Transport::sparse});
  return {{"sgd", dense(DenseValues::fp32)},
          {"sgd in fp16", dense(DenseValues::fp16), 1, true},
          {"sparse", sparse},
          {"sparse, coded", dgc({.wire = coded, .transport = Transport::sparse})},
          {"dense sum", dgc({.transport = Transport::dense})},
          {"dense sum, rounded", dgc({.wire = coded, .transport = Transport::dense})},
          {"split", dgc({.transport = Transport::sparse, .algorithm = ExchangeAlgorithm::split_reduce})},
          {"overlap", dgc({.transport = Transport::sparse, .bucket_bytes = 1})},
          {"small tensors in fp16", dgc({.small_tensors = SmallTensors::dense_fp16}), 1, true},
          {"small tensors sparse", dgc({.small_tensors = SmallTensors::sparse})},
          {"groups", [=](const OptimizerContext& context) { return make_grouped(context, 2, sparse); }, 2}};
}

const SgdOptions kNesterov{.momentum = 0.9, .weight_decay = 1e-3, .nesterov = true};

// Adds what the workers of a rank have not sent yet, which is their share of the mean. A group has one v.
void add_kept(const Way& way, const Optimizer& optimizer, int first_worker, std::vector<double>& sum) {
  for (const NamedState& state : optimizer.state()) {
    if ((state.name != "v" && state.name != "residual") || (first_worker + state.worker) % way.members != 0) continue;
    const std::vector<float> v = to_vector(*state.arena);
    for (size_t i = 0; i < v.size(); ++i) sum[i] += double{v[i]};
  }
}

// Whether an element is of a tensor of one dimension.
bool is_small(int64_t element) {
  const ParamLayout& layout = small_layout();
  const auto in = [&](int tensor) {
    return layout.offset(tensor) <= element && element < layout.offset(tensor) + layout.numel(tensor);
  };
  return in(1) || in(3);
}

// What a rank holds: the weights, then all state.
using Held = std::vector<std::vector<float>>;
Held held_by(const Optimizer& optimizer, const Arena& weights) {
  Held all = {to_vector(weights)};
  for (const NamedState& state : optimizer.state()) all.push_back(to_vector(*state.arena));
  return all;
}

}  // namespace

TEST_CASE("a gradient that is not finite changes nothing, whatever the exchange and wherever the worker is") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  const Way way = GENERATE(from_range(ways_of({.sgd = kNesterov, .small_tensors_sparsity = 0.9})));
  const Spread spread = GENERATE(Spread{1, 4}, Spread{2, 2}, Spread{4, 1});
  const auto [worker, tensor] = GENERATE(table<int, int>({{3, 0}, {1, 3}}));  // compressed, small
  if (!takes_all(backend) && spread.ranks != 2) return;
  CAPTURE(backend.name, way.name, spread.ranks, worker, tensor);
  ClusterOptions options;
  options.ranks = spread.ranks;
  options.local_workers = spread.local_workers;
  options.steps = 3;
  options.sparsity = [](uint64_t) { return 0.9; };
  options.make = way.make;
  options.gradient = [bad = worker, e = small_layout().offset(tensor) + 3](int at, uint64_t step, int64_t i, float w) {
    return step == 1 && at == bad && i == e ? std::nanf("") : gradient_at(at, step, i, w);
  };
  std::map<int, Held> before;
  options.after = [&](int rank, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport& report) {
    const Held now = held_by(optimizer, weights);
    CHECK(report.skipped == (step == 1));
    if (step == 1) CHECK((now == before[rank]));
    before[rank] = now;
  };
  run_cluster(on(backend, options));
}

TEST_CASE("what was sent and what is kept is all there was, and a flush leaves nothing of it behind") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  const Way way = GENERATE(from_range(ways_of({.small_tensors_sparsity = 0.9})));
  const Spread spread = GENERATE(Spread{1, 4}, Spread{2, 2}, Spread{4, 1});
  if (!takes_all(backend) && spread.ranks != 2) return;
  CAPTURE(backend.name, way.name, spread.ranks);
  constexpr int kAll = 4;
  const std::vector<float> start = initial_weights();
  std::vector<double> total(start.size()), kept(start.size()), left(start.size());
  std::vector<float> weights, flushed;
  auto group =
      spread.ranks > 1 ? make_thread_communicators(spread.ranks) : std::vector<std::unique_ptr<Communicator>>();
  if (group.empty()) group.push_back(make_single_communicator());
  std::mutex one_at_a_time;
  run_ranks(group, [&](Communicator& communicator) {
    const auto own = backend.make();
    const auto optimizer = way.make({*own, communicator, small_layout(), spread.local_workers});
    const Arena w(own->device(), small_layout());
    initialize(w, 5);
    std::vector<Arena> gradients;
    std::vector<float*> pointers;
    for (int local = 0; local < spread.local_workers; ++local) {
      pointers.push_back(gradients.emplace_back(own->device(), small_layout()).data());
    }
    StepRecord record(*own, communicator, spread.local_workers);
    const Stepper stepper{*optimizer, record, w, pointers};
    const int first = communicator.rank() * spread.local_workers;
    for (uint64_t step = 0; step < 6; ++step) {
      for (int local = 0; local < spread.local_workers; ++local) {
        fill(gradients[static_cast<size_t>(local)], [&](int64_t e) { return gradient_at(first + local, step, e, 0); });
      }
      stepper.step(step, 1, step < 2 ? 0.75 : 0.98);
    }
    {
      const std::lock_guard lock(one_at_a_time);
      add_kept(way, *optimizer, first, kept);
      weights = to_vector(w);
    }
    stepper.flush(6, 1);
    const std::lock_guard lock(one_at_a_time);
    add_kept(way, *optimizer, first, left);
    flushed = to_vector(w);
  });
  for (uint64_t step = 0; step < 6; ++step) {
    for (int worker = 0; worker < kAll; ++worker) {
      for_elements(small_layout(), [&](int64_t e) {
        total[static_cast<size_t>(e)] += double{gradient_at(worker, step, e, 0)} * way.members / kAll;
      });
    }
  }
  const bool can_flush = !way.name.starts_with("sgd");
  for_elements(small_layout(), [&](int64_t e) {
    const auto i = static_cast<size_t>(e);
    REQUIRE(double{start[i]} - double{weights[i]} + kept[i] == Approx(total[i]).margin(2e-5));
    if (!can_flush) return;
    REQUIRE(left[i] == 0);
    REQUIRE(double{start[i]} - double{flushed[i]} == Approx(total[i]).margin(2e-5));
  });
}

// Invariant 2. What the coding of a message rounds away stays in v, and is the whole difference. Where gradients are
// rounded, which are below 5, each is off by at most 2^-9, and all errors together by 10 times that.
TEST_CASE("keeping 100 % is dense SGD, with momentum where nothing is masked, whatever the exchange") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  const bool masking = GENERATE(false, true);
  const SgdOptions sgd = masking ? SgdOptions{.momentum = 0.9} : kNesterov;
  const Way way =
      GENERATE_COPY(from_range(ways_of({.sgd = sgd, .factor_masking = masking, .small_tensors_sparsity = 0})));
  const Spread spread = GENERATE(Spread{1, 4}, Spread{2, 2}, Spread{4, 1});
  if (!takes_all(backend) && spread.ranks != 2) return;
  if (masking && way.name.starts_with("sgd")) return;  // which masks nothing
  // An owner deals out a quarter of the elements, also where its shard has more: what it keeps is not masked.
  if (masking && way.name == "split") return;
  CAPTURE(backend.name, masking, way.name, spread.ranks);
  ClusterOptions options;
  options.ranks = spread.ranks;
  options.local_workers = spread.local_workers;
  options.steps = 6;
  options.sparsity = [](uint64_t) { return 0.0; };
  options.gradient = [](int worker, uint64_t step, int64_t e, float) { return gradient_at(worker, step, e, 0); };
  options.make = [&](const OptimizerContext& context) {
    return make_sgd(context, masking ? SgdOptions{} : sgd, DenseValues::fp32);
  };
  const std::vector<float> dense = run_cluster(options);

  options.make = way.make;
  options.gradient = [&](int worker, uint64_t step, int64_t e, float) {
    return gradient_at(worker, step, e, 0) / static_cast<float>(way.members);
  };
  std::vector<double> kept(dense.size());
  options.after = [&](int rank, uint64_t step, Optimizer& optimizer, const Arena&, const StepReport&) {
    if (step == 5) add_kept(way, optimizer, rank * spread.local_workers, kept);
  };
  const std::vector<float> weights = run_cluster(on(backend, options));
  const double margin = way.rounds_gradients ? double{options.lr} * 10 / 512 : 2e-5;
  for_elements(small_layout(), [&](int64_t e) {
    const auto i = static_cast<size_t>(e);
    if (masking && is_small(e)) return;  // it may travel whole, and is then never masked
    REQUIRE(double{weights[i]} - double{options.lr} * kept[i] == Approx(double{dense[i]}).margin(margin));
  });
}

TEST_CASE("stopped and resumed is never stopped, whatever the exchange") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  const Way way = GENERATE(from_range(ways_of({.sgd = kNesterov, .small_tensors_sparsity = 0.9})));
  CAPTURE(backend.name, way.name);
  ClusterOptions options;
  options.ranks = options.local_workers = 2;
  options.steps = 8;
  options.sparsity = [](uint64_t step) { return step < 6 ? 0.75 : 0.98; };
  options.make = way.make;
  std::map<int, Held> saved, ended, again;
  options.after = [&](int rank, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
    if (step == 4) saved[rank] = held_by(optimizer, weights);
    if (step == 7) ended[rank] = held_by(optimizer, weights);
  };
  run_cluster(on(backend, options));
  // The same from another past.
  options.sparsity = [](uint64_t step) { return step < 4 ? 0.5 : step < 6 ? 0.75 : 0.98; };
  options.after = [&](int rank, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
    if (step == 4) {
      size_t next = 0;
      const auto restore = [&](const Arena& arena) {
        arena.device().copy_in(arena.data(), saved[rank].at(next++).data(), arena.bytes());
      };
      restore(weights);
      for (const NamedState& state : optimizer.state()) restore(*state.arena);
    }
    if (step == 7) again[rank] = held_by(optimizer, weights);
  };
  run_cluster(on(backend, options));
  CHECK((again == ended));
}
