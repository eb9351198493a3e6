#include <catch.hpp>
#include <cmath>
#include <numeric>

#include "optim/dgc/layout.h"
#include "optim/dgc/split_layout.h"
#include "optim/grouped.h"
#include "tensor/errors.h"
#include "tests/optim/on_backend.h"

// exchange.algorithm "split_reduce": every worker adds up a shard and sends its largest sums.
using namespace dgc;
using namespace dgc::test;

namespace {

DgcOptions split() {
  DgcOptions dgc;
  dgc.sgd.momentum = 0.875f;
  dgc.transport = Transport::sparse;
  dgc.algorithm = ExchangeAlgorithm::split_reduce;
  return dgc;
}

ClusterOptions split_cluster(const DgcOptions& dgc, Spread spread) {
  return dgc_cluster(dgc, spread, [](uint64_t step) { return step < 2 ? 0.75 : step < 4 ? 0.9 : 0.98; });
}

// The compressed tensors of small_layout() once more, in plain loops: what is selected, dealt, added up and dropped.
struct Plainly {
  int workers;
  bool masking;
  std::vector<float> w;
  std::vector<std::vector<float>> u, v;
  int64_t had_no_room = 0, dropped = 0, sent = 0;

  struct Sent {
    size_t element;
    float value;
  };

  Plainly(int worker_count, bool masks) : workers(worker_count), masking(masks) {
    w = initial_weights();
    u.assign(static_cast<size_t>(workers), std::vector<float>(w.size()));
    v = u;
  }

  std::vector<Sent> select(size_t worker, uint64_t step, double sparsity) {
    const ParamLayout& layout = small_layout();
    std::vector<Sent> all;
    for (int t = 0; t < layout.size(); ++t) {
      if (layout.spec(t).shape.rank() < 2) continue;
      std::vector<size_t> order(static_cast<size_t>(layout.numel(t)));
      std::iota(order.begin(), order.end(), static_cast<size_t>(layout.offset(t)));
      for (const size_t i : order) {
        const float g = gradient_at(static_cast<int>(worker), step, static_cast<int64_t>(i), w[i]);
        u[worker][i] = std::fma(0.875f, u[worker][i], g / static_cast<float>(workers));
        v[worker][i] += u[worker][i];
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return std::fabs(v[worker][a]) > std::fabs(v[worker][b]); });
      order.resize(static_cast<size_t>(std::llround((1 - sparsity) * static_cast<double>(order.size()))));
      std::sort(order.begin(), order.end());
      for (const size_t i : order) all.push_back({i, v[worker][i]});
    }
    return all;
  }

  void step(uint64_t number, double sparsity, float lr) {
    const int64_t extent = small_layout().offset(2) + small_layout().numel(2);
    REQUIRE(small_layout().spec(2).name == "fc.weight");
    std::vector<std::vector<Sent>> selected;
    for (size_t worker = 0; worker < u.size(); ++worker) selected.push_back(select(worker, number, sparsity));
    const auto k = static_cast<int64_t>(selected[0].size());
    DgcDeal deal;
    deal.extent = extent;
    deal.owners = workers;
    std::vector<float> sum(w.size());
    std::vector<std::vector<Sent>> arrived(u.size());
    for (size_t worker = 0; worker < u.size(); ++worker) {
      std::vector<int64_t> used(u.size());
      for (const Sent& s : selected[worker]) {
        const auto owner = static_cast<size_t>(deal.place(static_cast<int64_t>(s.element)).owner);
        if (used[owner]++ >= 2 * k / workers) {
          ++had_no_room;
          continue;
        }
        arrived[worker].push_back(s);
        sum[s.element] += s.value;
      }
    }
    std::vector<float> result(w.size());
    for (int owner = 0; owner < workers; ++owner) {
      std::vector<size_t> mine;
      for (int64_t e = 0; e < extent; ++e) {
        if (deal.place(e).owner == owner) mine.push_back(static_cast<size_t>(e));
      }
      std::stable_sort(mine.begin(), mine.end(),
                       [&](size_t a, size_t b) { return std::fabs(sum[a]) > std::fabs(sum[b]); });
      mine.resize(static_cast<size_t>(k / workers));
      for (const size_t i : mine) result[i] = sum[i];
    }
    for (size_t worker = 0; worker < u.size(); ++worker) {
      for (const Sent& s : arrived[worker]) {
        if (result[s.element] == 0) {
          ++dropped;
          continue;
        }
        ++sent;
        v[worker][s.element] = 0;
        if (masking) u[worker][s.element] = 0;
      }
    }
    for (size_t i = 0; i < w.size(); ++i) w[i] = std::fma(-lr, result[i], w[i]);
  }
};

void check_compressed(const std::vector<float>& got, const std::vector<float>& want) {
  for (int t = 0; t < small_layout().size(); ++t) {
    if (small_layout().spec(t).shape.rank() < 2) continue;
    for (int64_t e = 0; e < small_layout().numel(t); ++e) {
      const auto i = static_cast<size_t>(small_layout().offset(t) + e);
      if (got[i] != want[i]) FAIL("element " << i << ": " << got[i] << " is not " << want[i]);
    }
  }
}

}  // namespace

TEST_CASE("a split does what its definition says, bit for bit, and keeps what it drops", "[optim]") {
  const bool masking = GENERATE(true, false);
  const Spread spread = GENERATE(Spread{1, 4}, Spread{4, 1}, Spread{2, 4}, Spread{1, 8});
  const auto backend = GENERATE(from_range(kernel_backends()));
  if (!takes_all(backend) && spread.ranks != 2) return;  // several ranks with several workers each have all there is
  CAPTURE(backend.name, masking, spread.ranks);
  DgcOptions dgc = split();
  dgc.factor_masking = masking;
  ClusterOptions options = on(backend, split_cluster(dgc, spread));
  Plainly plainly(spread.ranks * spread.local_workers, masking);
  options.after = [&](int rank, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport& report) {
    CHECK((report.bytes.travel == Travel::split_reduce));
    if (rank != 0) return;
    plainly.step(step, options.sparsity(step), options.lr);
    check_compressed(to_vector(weights), plainly.w);
    for (const NamedState& state : optimizer.state()) {
      if (state.worker < 0) continue;
      const auto worker = static_cast<size_t>(state.worker);
      check_compressed(to_vector(*state.arena), (state.name == "u" ? plainly.u : plainly.v)[worker]);
    }
  };
  run_cluster(options);
  CHECK(plainly.dropped > plainly.sent / 10);
  CHECK(plainly.sent > 0);
  CHECK((plainly.had_no_room > 0) == (plainly.workers == 8));
}

TEST_CASE("what a split sends and holds back is all that was accumulated", "[optim]") {
  DgcOptions dgc = split();
  dgc.sgd.momentum = 0;
  const auto backend = GENERATE(from_range(kernel_backends()));
  ClusterOptions options = on(backend, split_cluster(dgc, {1, 4}));
  const std::vector<float> start = initial_weights();
  std::vector<double> owed(start.size());
  options.gradient = [&](int worker, uint64_t step, int64_t e, float) { return gradient_at(worker, step, e, 0); };
  options.after = [&](int, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
    const std::vector<float> w = to_vector(weights);
    std::vector<double> kept(w.size());
    for (const NamedState& state : optimizer.state()) {
      if (state.name != "v") continue;
      const std::vector<float> v = to_vector(*state.arena);
      for (size_t i = 0; i < w.size(); ++i) kept[i] += double{v[i]};
    }
    for (int t = 0; t < small_layout().size(); ++t) {
      if (small_layout().spec(t).shape.rank() < 2) continue;
      for (int64_t e = 0; e < small_layout().numel(t); ++e) {
        const int64_t i = small_layout().offset(t) + e;
        const auto at = static_cast<size_t>(i);
        for (int worker = 0; worker < 4; ++worker) owed[at] += double{gradient_at(worker, step, i, 0)} / 4;
        const double moved = (double{start[at]} - double{w[at]}) / double{options.lr};
        if (std::fabs(moved + kept[at] - owed[at]) > 1e-4) FAIL("element " << i << " in step " << step);
      }
    }
  };
  run_cluster(options);
}

TEST_CASE("a split gives the same bits however workers share ranks: every switch", "[optim]") {
  DgcOptions dgc = split();
  dgc.sgd.nesterov = true;
  dgc.sgd.weight_decay = GENERATE(0.f, 1e-3f);
  dgc.sgd.clip_norm = 10;
  dgc.momentum_correction = GENERATE(true, false);
  dgc.small_tensors = GENERATE(SmallTensors::dense, SmallTensors::dense_fp16, SmallTensors::sparse);
  dgc.small_tensors_sparsity = 0.9;
  dgc.transport = GENERATE(Transport::sparse, Transport::automatic);
  CAPTURE(dgc.sgd.weight_decay, dgc.momentum_correction, dgc.small_tensors, dgc.transport);
  const auto truth = run_cluster(split_cluster(dgc, {1, 6}));
  for (const Spread spread : {Spread{6, 1}, Spread{2, 3}, Spread{3, 2}}) {
    CHECK((run_cluster(split_cluster(dgc, spread)) == truth));
  }
}

TEST_CASE("groups split too, and then shards are the groups'", "[optim]") {
  const auto grouped = [](Spread spread) {
    ClusterOptions options = split_cluster(split(), spread);
    const auto make = options.make;
    options.make = [=](const OptimizerContext& context) { return make_grouped(context, 2, make); };
    return run_cluster(options);
  };
  const auto truth = grouped({1, 8});
  CHECK((grouped({8, 1}) == truth));
  CHECK((grouped({2, 4}) == truth));
}

TEST_CASE("auto compares a split with a dense sum, and goes back and forth between them", "[optim]") {
  DgcOptions dgc = split();
  dgc.transport = Transport::automatic;
  ClusterOptions options = split_cluster(dgc, {2, 4});
  options.sparsity = [](uint64_t step) { return step % 2 == 0 ? 0.5 : 0.98; };
  options.after = [&](int, uint64_t step, Optimizer&, const Arena&, const StepReport& report) {
    CHECK((report.bytes.travel == (step % 2 == 0 ? Travel::dense : Travel::split_reduce)));
    // 31 entries of 1518, from 8 workers: rows of 2 * 7 words in a cache line, and 3 sums in 48 + 4 + 6 + 12 bytes and
    // padding. 38 parameters travel dense.
    if (step % 2 != 0) CHECK(report.bytes.sent == 8 * 64 + 80 + 4 * 38);
  };
  const auto truth = run_cluster(options);
  const auto sparsity = options.sparsity;
  options = split_cluster(dgc, {1, 8});
  options.sparsity = sparsity;
  CHECK((run_cluster(options) == truth));
}

TEST_CASE("one worker has nobody to split with", "[optim]") {
  DgcOptions gather = split();
  gather.algorithm = ExchangeAlgorithm::all_gather;
  CHECK((run_cluster(split_cluster(split(), {1, 1})) == run_cluster(split_cluster(gather, {1, 1}))));
}

TEST_CASE("what reaches a worker stays below 6 k words, however many workers there are", "[optim]") {
  // ResNet-50's compressed elements, in a few tensors.
  const ParamLayout params(
      {{"a", {1000, 2048}, {}}, {"b", {4608, 512}, {}}, {"c", {20000, 1053}, {}}, {"d", {64, 1160}, {}}});
  const double sparsity = GENERATE(0.9, 0.99, 0.999, 0.9999);
  int64_t of_two = 0;
  for (const int64_t workers : {2, 3, 4, 8, 16, 24, 48, 100, 256, 1000, 4000}) {
    const DgcOptions options{.transport = Transport::sparse, .algorithm = ExchangeAlgorithm::split_reduce};
    const DgcLayout layout = make_dgc_layout(params, options, sparsity, workers);
    REQUIRE(layout.split);
    const int64_t k = layout.canonical.entries();
    CAPTURE(sparsity, workers, k, layout.split->received_bytes());
    if (workers == 2) of_two = layout.split->received_bytes();
    if (k < 100 * workers) continue;  // then rows' padding and headers, 27 words from every worker, are no trifle
    CHECK(layout.split->received_bytes() < 4 * 6 * k);
    CHECK(layout.split->received_bytes() < 2.2 * static_cast<double>(of_two));
    if (workers >= 16) {
      CHECK(static_cast<double>(layout.split->received_bytes()) <
            static_cast<double>((workers - 1) * static_cast<int64_t>(layout.wire.message_bytes())));
    }
  }
}

TEST_CASE("after a flush and a skipped step a split goes on, and nothing has stayed behind", "[optim]") {
  const auto factory = GENERATE(from_range(kernel_backends()));
  CAPTURE(factory.name);
  const auto backend = factory.make();
  const auto communicator = make_single_communicator();
  const auto optimizer = make_dgc({*backend, *communicator, small_layout(), 2}, split());
  const Arena weights(backend->device(), small_layout());
  const Arena first(backend->device(), small_layout()), second(backend->device(), small_layout());
  initialize(weights, 5);
  float* const pointers[] = {first.data(), second.data()};
  StepRecord record(*backend, *communicator, 2);
  const Stepper stepper{*optimizer, record, weights, pointers};
  const auto fill_both = [&](uint64_t step) {
    fill(first, [&](int64_t e) { return gradient_at(0, step, e, 0); });
    fill(second, [&](int64_t e) { return gradient_at(1, step, e, 0); });
  };
  const auto everything = [&] {
    std::vector<std::vector<float>> all = {to_vector(weights)};
    for (const NamedState& state : optimizer->state()) all.push_back(to_vector(*state.arena));
    return all;
  };
  for (uint64_t step = 0; step < 3; ++step) {
    fill_both(step);
    CHECK((stepper.step(step, 0.1f, 0.98).bytes.travel == Travel::split_reduce));
  }
  const auto before = everything();
  fill_both(3);
  fill(second, [](int64_t e) { return e == 0 ? NAN : 1.f; });
  CHECK(stepper.step(3, 0.1f, 0.98).skipped);
  CHECK((everything() == before));
  CHECK((stepper.flush(4, 0.1f).bytes.travel == Travel::sparse));
  for (const NamedState& state : optimizer->state()) {
    if (state.name != "v") continue;
    const std::vector<float> v = to_vector(*state.arena);
    for (int64_t e = 0; e < small_layout().small_offset(); ++e) REQUIRE(v[static_cast<size_t>(e)] == 0);
  }
  fill_both(5);
  CHECK((stepper.step(5, 0.1f, 0.98).bytes.travel == Travel::split_reduce));
}

TEST_CASE("a shard of 2^32 elements is refused") {
  CHECK_THROWS_AS(make_split_layout(int64_t{1} << 33, 1000, 2), UserError);
}
