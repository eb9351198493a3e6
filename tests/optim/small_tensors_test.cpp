#include <catch.hpp>

#include "optim/dgc/dense_sum.h"
#include "optim/dgc/layout.h"
#include "tensor/half.h"
#include "tests/optim/on_backend.h"

// exchange.small_tensors. That sparse is the paper's algorithm on one more tensor, optimizers_test.cpp shows.
using namespace dgc;
using namespace dgc::test;

namespace {

ClusterOptions cluster(SmallTensors small, int ranks, int local_workers) {
  ClusterOptions options;
  options.ranks = ranks;
  options.local_workers = local_workers;
  options.steps = 6;
  options.make = [small](const OptimizerContext& context) {
    DgcOptions dgc;
    dgc.sgd.momentum = 0.9f;
    dgc.sgd.weight_decay = 1e-3f;
    dgc.wire = {WireValues::fp16, WireIndices::rice};
    dgc.small_tensors = small;
    dgc.small_tensors_sparsity = 0.9;
    return make_dgc(context, dgc);
  };
  return options;
}

constexpr int kSummedWorkers = 12;

float half_number(int worker, int64_t i) { return gradient_at(worker, 3, i, 0); }

// What the last rank holds after Fp16Sum has summed n such numbers of every worker.
std::vector<float> summed_on(int ranks, int64_t n, const BackendFactory& factory) {
  std::vector<float> sums(static_cast<size_t>(n));
  const auto group = make_thread_communicators(ranks);
  run_ranks(group, [&](Communicator& communicator) {
    const auto backend = factory.make();
    const int local_workers = kSummedWorkers / ranks, first = communicator.rank() * local_workers;
    Fp16Sum sum({*backend, communicator, small_layout(), local_workers}, n);
    std::vector<uint16_t> halves(sums.size());
    for (int local = 0; local < local_workers; ++local) {
      for (int64_t i = 0; i < n; ++i) halves[static_cast<size_t>(i)] = float_to_half(half_number(first + local, i));
      backend->device()->copy_in(sum.packed(local), halves.data(), halves.size() * sizeof(uint16_t));
    }
    const float* const result = sum.run();
    if (communicator.rank() != ranks - 1) return;
    backend->device()->copy_out(sums.data(), result, sums.size() * sizeof(float));
  });
  return sums;
}

}  // namespace

TEST_CASE("numbers in fp16 are summed in worker order, by however many ranks", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  const auto n = GENERATE(int64_t{1}, int64_t{37}, int64_t{160});  // shards: some empty, of an odd number, full ones
  CAPTURE(backend.name, n);
  std::vector<float> want(static_cast<size_t>(n));
  for (int worker = 0; worker < kSummedWorkers; ++worker) {
    for (int64_t i = 0; i < n; ++i) {
      want[static_cast<size_t>(i)] += half_to_float(float_to_half(half_number(worker, i)));
    }
  }
  for (const int ranks : {1, 2, 3, 4, 12}) {
    CAPTURE(ranks);
    CHECK((summed_on(ranks, n, backend) == want));
  }
}

TEST_CASE("small tensors: weights do not depend on how workers are spread over ranks", "[optim]") {
  const auto small = GENERATE(SmallTensors::dense, SmallTensors::dense_fp16, SmallTensors::sparse);
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, small);
  const auto alone = run_cluster(cluster(small, 1, 4));
  CHECK((run_cluster(cluster(small, 4, 1)) == alone));
  CHECK((run_cluster(on(backend, cluster(small, 2, 2))) == alone));
}

TEST_CASE("small tensors in fp16: nearly as dense, and only they change at first", "[optim]") {
  ClusterOptions dense = cluster(SmallTensors::dense, 1, 3), half = cluster(SmallTensors::dense_fp16, 1, 3);
  const auto want = run_cluster(dense), got = run_cluster(half);
  CHECK((want != got));
  for (size_t i = 0; i < want.size(); ++i) REQUIRE(got[i] == Approx(want[i]).margin(2e-3));

  dense.steps = half.steps = 1;
  const auto first = run_cluster(dense), first_half = run_cluster(half);
  const auto small_at = small_layout().small_offset();
  CHECK(std::equal(first.begin(), first.begin() + small_at, first_half.begin()));
  CHECK((first != first_half));
}

TEST_CASE("small tensors: nothing is lost", "[optim]") {
  // Plain accumulation and plain SGD at rate 1: what has moved the weights and what is held back are together all
  // gradients there ever were, also where rounding to fp16 takes something away. A flush then leaves nothing behind.
  const auto small = GENERATE(SmallTensors::dense_fp16, SmallTensors::sparse);
  CAPTURE(small);
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  DgcOptions dgc;
  dgc.wire = {WireValues::int8, WireIndices::run16};
  dgc.small_tensors = small;
  dgc.small_tensors_sparsity = 0.9;
  const auto optimizer = make_dgc({*backend, *communicator, small_layout(), 1}, dgc);
  const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
  initialize(weights, 5);
  const std::vector<float> start = to_vector(weights);
  float* const pointers[] = {gradient.data()};
  StepRecord record(*backend, *communicator, 1);
  const Stepper stepper{*optimizer, record, weights, pointers};
  std::vector<double> total(start.size());
  for (uint64_t step = 0; step < 8; ++step) {
    for_elements(small_layout(), [&](int64_t e) {
      gradient.data()[e] = gradient_at(0, step, e, 0);
      total[static_cast<size_t>(e)] += double{gradient.data()[e]};
    });
    stepper.step(step, 1, 0.98);
  }
  const auto v_of = [&] {
    for (const NamedState& state : optimizer->state()) {
      if (state.name == "v") return to_vector(*state.arena);
    }
    throw InternalError("no v");
  };
  const std::vector<float> held = v_of();
  CHECK(std::any_of(held.begin() + small_layout().small_offset(), held.end(), [](float v) { return v != 0; }));
  for_elements(small_layout(), [&](int64_t e) {
    const auto i = static_cast<size_t>(e);
    REQUIRE(double{start[i]} - double{weights.data()[e]} + double{held[i]} == Approx(total[i]).margin(1e-5));
  });

  stepper.flush(8, 1);
  for_elements(small_layout(), [&](int64_t e) {
    const auto i = static_cast<size_t>(e);
    REQUIRE(v_of()[i] == 0);
    REQUIRE(double{start[i]} - double{weights.data()[e]} == Approx(total[i]).margin(1e-5));
  });
  CHECK_FALSE(stepper.step(9, 1, 0.98).skipped);  // and on it goes
}

TEST_CASE("small tensors: a skipped step changes nothing", "[optim]") {
  const auto small = GENERATE(SmallTensors::dense_fp16, SmallTensors::sparse);
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  const auto optimizer = cluster(small, 1, 1).make({*backend, *communicator, small_layout(), 1});
  const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
  initialize(weights, 5);
  float* const pointers[] = {gradient.data()};
  StepRecord record(*backend, *communicator, 1);
  const Stepper stepper{*optimizer, record, weights, pointers};
  for_elements(small_layout(), [&](int64_t e) { gradient.data()[e] = gradient_at(0, 0, e, 0); });
  stepper.step(0, 0.1f, 0.9);
  const auto everything = [&] {
    std::vector<std::vector<float>> all = {to_vector(weights)};
    for (const NamedState& state : optimizer->state()) all.push_back(to_vector(*state.arena));
    return all;
  };
  const auto before = everything();
  gradient.data()[0] = INFINITY;
  CHECK(stepper.step(1, 0.1f, 0.9).skipped);
  CHECK((everything() == before));
}

TEST_CASE("small tensors: what is sent", "[optim]") {
  const auto layout = [](SmallTensors small, double sparsity) {
    return make_dgc_layout(small_layout(), {.small_tensors = small, .small_tensors_sparsity = 0.9}, sparsity);
  };
  const DgcLayout dense = layout(SmallTensors::dense, 0.98), half = layout(SmallTensors::dense_fp16, 0.98);
  CHECK((dense.dense_numel == 38 && dense.dense_bytes == 152 && half.dense_bytes == 76));
  CHECK(dense.sent_bytes() - half.sent_bytes() == 76);

  const DgcLayout sparse = layout(SmallTensors::sparse, 0.98);
  REQUIRE(sparse.segments.size() == 3);
  const DgcSegment& one = sparse.segments[2];
  CHECK(one.offset == small_layout().small_offset());
  CHECK(one.offset + one.numel == small_layout().extent());
  CHECK(one.k == 4);  // a tenth of 38, not of the 48 with the gaps
  CHECK((sparse.dense.empty() && sparse.dense_bytes == 0));
  CHECK(layout(SmallTensors::sparse, 0.75).segments[2].k == 10);  // the warm-up is theirs too: 9.5
  CHECK(layout(SmallTensors::sparse, 0).segments[2].k == 38);

  CHECK(make_flush_layout(small_layout(), {.small_tensors = SmallTensors::dense_fp16}).segments[2].k == 38);
  CHECK(make_flush_layout(small_layout(), {}).segments.size() == 2);
}

TEST_CASE("a tensor too large for a message is refused by its name") {
  const auto layout = [](int64_t rows) { return ParamLayout({{"fc.weight", {rows, 1 << 16}, {}}}); };
  CHECK_NOTHROW(make_dgc_layout(layout((1 << 16) - 1), {}, 0));
  CHECK_THROWS_WITH(make_dgc_layout(layout(1 << 16), {}, 0), Catch::Contains("fc.weight has 4294967296 parameters"));
}
