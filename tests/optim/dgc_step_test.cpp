#include <algorithm>
#include <catch.hpp>
#include <limits>

#include "optim/dgc/layout.h"
#include "tensor/errors.h"
#include "tests/optim/on_backend.h"
#include "tests/support/tampering.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

namespace {

// One rank with two workers, stepped by hand.
struct Rank {
  explicit Rank(std::function<std::unique_ptr<Optimizer>(const OptimizerContext&)> make,
                std::unique_ptr<Communicator> c = make_single_communicator(),
                std::unique_ptr<Backend> b = make_cpu_backend(1))
      : backend(std::move(b)),
        communicator(std::move(c)),
        record(*backend, *communicator, 2),
        weights(backend->device(), small_layout()) {
    for (int worker = 0; worker < 2; ++worker) {
      gradients.emplace_back(backend->device(), small_layout());
      pointers.push_back(gradients.back().data());
    }
    initialize(weights, 5);
    optimizer = make({*backend, *communicator, small_layout(), 2});
  }

  StepReport step(uint64_t number) {
    const std::vector<float> before = to_vector(weights);
    for (int worker = 0; worker < 2; ++worker) {
      fill(gradients[static_cast<size_t>(worker)],
           [&](int64_t e) { return gradient_at(first_worker() + worker, number, e, before[static_cast<size_t>(e)]); });
    }
    return run(number);
  }
  Stepper stepper() { return {*optimizer, record, weights, pointers}; }
  StepReport run(uint64_t number) { return stepper().step(number, 0.1f, 0.99); }
  int first_worker() const { return 2 * communicator->rank(); }

  std::vector<std::vector<float>> everything() const {
    std::vector<std::vector<float>> all = {to_vector(weights)};
    for (const NamedState& state : optimizer->state()) all.push_back(to_vector(*state.arena));
    return all;
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;
  StepRecord record;
  Arena weights;
  std::vector<Arena> gradients;
  std::vector<float*> pointers;
  std::unique_ptr<Optimizer> optimizer;
};

std::unique_ptr<Optimizer> dgc_of(const OptimizerContext& context) {
  DgcOptions options;
  options.sgd.momentum = 0.9f;
  return make_dgc(context, options);
}

std::unique_ptr<Optimizer> sgd_of(const OptimizerContext& context) {
  SgdOptions options;
  options.momentum = 0.9f;
  return make_sgd(context, options);
}

// May change what an all_gather delivered: `all` parts, in whose place `before` lay until then.
using Tamper = std::function<void(std::span<std::byte> all, std::span<const std::byte> before)>;

// Two ranks. A step gathers shares, messages and the dense tensors' sum: the messages of step `step` are tampered with.
std::vector<std::unique_ptr<Communicator>> tampering_group(int step, const Tamper& tamper) {
  auto group = make_thread_communicators(2);
  for (auto& one : group) {
    one = std::make_unique<Tampering>(std::move(one), [=](int call, auto all, auto before) {
      if (call == 3 * step + 1) tamper(all, before);
    });
  }
  return group;
}

}  // namespace

TEST_CASE("a gradient that is not finite changes nothing, on any rank", "[optim]") {
  const bool compressed = GENERATE(true, false);
  const float bad = GENERATE(std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN());
  const int tensor = GENERATE(0, 1);  // compressed, dense
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, compressed, bad, tensor);
  const auto make = compressed ? dgc_of : sgd_of;
  Rank rank(make, make_single_communicator(), backend.make()),
      untouched(make, make_single_communicator(), backend.make());
  rank.step(0);
  untouched.step(0);
  const auto before = rank.everything();
  rank.backend->device()->copy_in(rank.pointers[1] + small_layout().offset(tensor) + 3, &bad, sizeof(bad));
  const StepReport report = rank.run(1);
  CHECK(report.skipped);
  CHECK((rank.everything() == before));

  CHECK_FALSE(rank.step(2).skipped);  // and the next step is as if nothing had been
  untouched.step(2);
  CHECK((rank.everything() == untouched.everything()));
}

TEST_CASE("ranks skip together", "[optim]") {
  const auto group = make_thread_communicators(3);
  std::array<StepReport, 3> reports;
  run_ranks(group, [&](Communicator& communicator) {
    const auto backend = make_cpu_backend(1);
    const auto optimizer = dgc_of({*backend, communicator, small_layout(), 1});
    const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
    if (communicator.rank() == 1) gradient.data()[0] = std::numeric_limits<float>::infinity();
    float* const pointers[] = {gradient.data()};
    StepRecord record(*backend, communicator, 1);
    reports[static_cast<size_t>(communicator.rank())] =
        Stepper{*optimizer, record, weights, pointers}.step(0, 0.1f, 0.9);
  });
  for (const StepReport& report : reports) CHECK(report.skipped);
}

TEST_CASE("the report says what was sent and how long the gradients were", "[optim]") {
  Rank rank(dgc_of);
  for (int worker = 0; worker < 2; ++worker)
    std::fill_n(rank.pointers[static_cast<size_t>(worker)], 3, 1.f + 6.f * static_cast<float>(worker));
  const StepReport report = rank.run(0);
  CHECK(report.grad_norm == Approx(std::sqrt((3 * 1 + 3 * 49) / 2.0)));
  CHECK(report.bytes.dense == 4 * (288 + 8 + 1230 + 30));
  // 3 of 288 and 12 of 1230: header 48, 4 + 6 -> 12 + 12 = 24, 4 + 24 + 48 = 76, together 100 -> 112; 38 floats dense.
  CHECK(report.bytes.sent == 48 + 112 + 4 * 38);
  CHECK(make_dgc_layout(small_layout(), {}, 0.99).sent_bytes() == report.bytes.sent);

  Rank dense(sgd_of);
  const StepReport dense_report = dense.step(0);
  CHECK(dense_report.bytes.sent == dense_report.bytes.dense);
}

TEST_CASE("DGC keeps momentum only where a step reads it", "[optim]") {
  struct Case {
    float momentum, weight_decay;
    bool momentum_correction;
    SmallTensors small_tensors;
    bool keeps;
  };
  const auto [momentum, weight_decay, momentum_correction, small_tensors, keeps] =
      GENERATE(Case{0.9f, 0, true, SmallTensors::dense, true}, Case{0.9f, 0, true, SmallTensors::sparse, false},
               Case{0.9f, 0, false, SmallTensors::sparse, true}, Case{0.9f, 1e-4f, true, SmallTensors::sparse, true},
               Case{0, 0, true, SmallTensors::dense, false}, Case{0, 0, false, SmallTensors::dense, false},
               Case{0, 0, false, SmallTensors::sparse, false}, Case{0, 1e-4f, false, SmallTensors::dense, true});
  CAPTURE(momentum, weight_decay, momentum_correction, small_tensors == SmallTensors::sparse);
  DgcOptions options;
  options.sgd.momentum = momentum;
  options.sgd.weight_decay = weight_decay;
  options.momentum_correction = momentum_correction;
  options.small_tensors = small_tensors;
  Rank rank([&](const OptimizerContext& context) { return make_dgc(context, options); });
  rank.step(0);
  const auto is_momentum = [](const NamedState& state) { return state.name == "momentum"; };
  CHECK(std::ranges::any_of(rank.optimizer->state(), is_momentum) == keeps);
}

TEST_CASE("k per tensor", "[optim]") {
  CHECK(kept_elements(1000, 0.999) == 1);
  CHECK(kept_elements(1500, 0.999) == 2);
  CHECK(kept_elements(10, 0.999) == 1);
  CHECK(kept_elements(1000000, 0.999) == 1000);
  CHECK(kept_elements(64, 0.984375) == 1);
  CHECK(kept_elements(7, 0) == 7);
  CHECK(kept_elements(7, 0.75) == 2);
}

TEST_CASE("a damaged message stops the step, names the worker and is not applied", "[optim]") {
  const auto at = GENERATE(size_t{0}, size_t{17}, size_t{50}, size_t{159}, size_t{160 + 90}, size_t{3 * 160 + 48});
  // Two workers each, whose messages have 160 bytes.
  auto group = tampering_group(0, [at](std::span<std::byte> all, auto) { all[at] ^= std::byte{4}; });
  run_ranks(group, [&](Communicator& communicator) {
    Rank rank(dgc_of, std::move(group[static_cast<size_t>(communicator.rank())]));
    const auto weights = to_vector(rank.weights);
    try {
      rank.step(6);
      DGC_CHECK(false, "the damage went unnoticed");
    } catch (const PeerFailed& error) {
      const std::string expected = fmt::format("message of worker {} in step 6", at / 160);
      DGC_CHECK(std::string(error.what()).starts_with(expected), error.what());
    }
    DGC_CHECK(to_vector(rank.weights) == weights, "a damaged message was applied");
  });
}

// An all-gather is many copies, so what is damaged on one link only its receiver sees.
TEST_CASE("a message that is damaged on its way to one rank ends that rank, and then the others", "[optim]") {
  const auto group = make_thread_communicators(2);
  std::array<std::string, 2> said;
  std::array<int, 2> applied{};
  run_ranks(group, [&](Communicator& communicator) {
    const auto me = static_cast<size_t>(communicator.rank());
    Rank rank(dgc_of, std::make_unique<Tampering>(communicator, [me](int call, std::span<std::byte> all, auto) {
                if (me == 1 && call == 1) all[50] ^= std::byte{4};
              }));
    std::vector<float> weights = to_vector(rank.weights);
    const auto changed = [&] {
      const std::vector<float> before = std::exchange(weights, to_vector(rank.weights));
      return weights != before;
    };
    try {
      for (uint64_t step = 6; step < 8; ++step) {
        rank.step(step);
        applied[me] += changed() ? 1 : 0;
      }
    } catch (const PeerFailed& error) {
      said[me] = error.what();
      communicator.abort(error.what());  // as a rank does that ends (train/ranks/failure.h)
    }
    DGC_CHECK(!changed(), "the step that failed was applied");
  });
  const std::string damage = "message of worker 0 in step 6";
  CHECK_THAT(said[1], Catch::StartsWith(damage));
  CHECK_THAT(said[0], Catch::StartsWith("rank 1 failed: " + damage));
  CHECK(applied == std::array{1, 0});
}

// What was seen with NCCL where streams were not ordered: the messages are those of the step before, or the ranks'
// parts have changed places. Every byte of them is sound.
TEST_CASE("stale and reordered messages are told from fresh ones and not applied", "[optim]") {
  Tamper tamper;
  std::string expected;
  SECTION("stale") {
    tamper = [](std::span<std::byte> all, auto before) { std::ranges::copy(before, all.begin()); };
    expected = "message of worker 0 in step 1: it is stale, from step 0";
  }
  SECTION("reordered") {
    tamper = [](std::span<std::byte> all, auto) {
      std::ranges::swap_ranges(all.first(all.size() / 2), all.last(all.size() / 2));
    };
    expected = "message of worker 0 in step 1: it comes from worker 2";
  }
  auto group = tampering_group(1, tamper);
  run_ranks(group, [&](Communicator& communicator) {
    Rank rank(dgc_of, std::move(group[static_cast<size_t>(communicator.rank())]));
    rank.step(0);
    const auto weights = to_vector(rank.weights);
    try {
      rank.step(1);
      DGC_CHECK(false, "the confusion went unnoticed");
    } catch (const PeerFailed& error) {
      DGC_CHECK(error.what() == expected, error.what());
    }
    DGC_CHECK(to_vector(rank.weights) == weights, "a confused message was applied");
  });
}

TEST_CASE("flush sends all that was held back, once", "[optim]") {
  const auto wire = GENERATE(WireFormat{}, WireFormat{WireValues::int8, WireIndices::rice});
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name);
  Rank rank(
      [&](const OptimizerContext& context) {
        DgcOptions options;
        options.sgd.momentum = 0.9f;
        options.wire = wire;
        return make_dgc(context, options);
      },
      make_single_communicator(), backend.make());
  for (uint64_t step = 0; step < 4; ++step) rank.step(step);
  const auto before = rank.everything();  // weights, momentum, u, v of worker 0, u, v of worker 1
  const StepReport report = rank.stepper().flush(4, 0.5f);
  const auto after = rank.everything();
  CHECK(report.bytes.sent > 0);
  CHECK((after[1] == before[1] && after[2] == before[2] && after[4] == before[4]));
  for (int i = 0; i < small_layout().size(); ++i) {
    for (int64_t e = small_layout().offset(i); e < small_layout().offset(i) + small_layout().numel(i); ++e) {
      const auto at = static_cast<size_t>(e);
      const float held = before[3][at] + before[5][at];
      REQUIRE(after[0][at] == Approx(before[0][at] - 0.5f * held).margin(1e-6));
      REQUIRE(after[3][at] == 0);  // in full, whatever messages look like in a step
    }
  }
  CHECK_FALSE(rank.step(5).skipped);  // and on it goes
}
