#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "optim/dgc_layout.h"
#include "tensor/errors.h"
#include "tests/optim/cluster.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

namespace {

// One rank with two workers, stepped by hand.
struct Rank {
  explicit Rank(std::function<std::unique_ptr<Optimizer>(const OptimizerContext&)> make,
                std::unique_ptr<Communicator> c = make_single_communicator())
      : communicator(std::move(c)), weights(backend->device(), small_layout()) {
    for (int worker = 0; worker < 2; ++worker) {
      gradients.emplace_back(backend->device(), small_layout());
      pointers.push_back(gradients.back().data());
    }
    initialize(weights, 5);
    optimizer = make({*backend, *communicator, small_layout(), 2});
  }

  StepReport step(uint64_t number) {
    for (int worker = 0; worker < 2; ++worker) {
      for_elements(small_layout(), [&](int64_t e) {
        pointers[static_cast<size_t>(worker)][e] = gradient_at(worker, number, e, weights.data()[e]);
      });
    }
    return run(number);
  }
  StepReport run(uint64_t number) { return optimizer->step({pointers, weights, 0.1f, 0.99, number}); }

  std::vector<std::vector<float>> everything() const {
    std::vector<std::vector<float>> all = {to_vector(weights)};
    for (const NamedState& state : optimizer->state()) all.push_back(to_vector(*state.arena));
    return all;
  }

  std::unique_ptr<Backend> backend = make_cpu_backend(1);
  std::unique_ptr<Communicator> communicator;
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

// Damages what all_gather delivers: byte `at` of everything, from a given call on.
class Damaging final : public Communicator {
 public:
  Damaging(int call, size_t at) : call_(call), at_(at) {}
  std::string name() const override { return "damaging"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::memcpy(all.data(), mine.data(), mine.size());
    if (calls_++ == call_) all[at_ < all.size() ? at_ : all.size() - 1] ^= std::byte{4};
  }
  void all_reduce_ordered(std::span<const float* const> workers, float* out, size_t n) override {
    make_single_communicator()->all_reduce_ordered(workers, out, n);
  }
  void barrier() override {}
  void abort(const std::string&) noexcept override {}

 private:
  int call_, calls_ = 0;
  size_t at_;
};

}  // namespace

TEST_CASE("a gradient that is not finite changes nothing, on any rank", "[optim]") {
  const bool compressed = GENERATE(true, false);
  const float bad = GENERATE(std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN());
  const int tensor = GENERATE(0, 1);  // compressed, dense
  CAPTURE(compressed, bad, tensor);
  Rank rank(compressed ? dgc_of : sgd_of), untouched(compressed ? dgc_of : sgd_of);
  rank.step(0);
  untouched.step(0);
  const auto before = rank.everything();
  rank.pointers[1][small_layout().offset(tensor) + 3] = bad;
  const StepReport report = rank.run(1);
  CHECK(report.skipped);
  CHECK(report.sent_bytes == 0);
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
    reports[static_cast<size_t>(communicator.rank())] = optimizer->step({pointers, weights, 0.1f, 0.9, 0});
  });
  for (const StepReport& report : reports) CHECK(report.skipped);
}

TEST_CASE("the report says what was sent and how long the gradients were", "[optim]") {
  Rank rank(dgc_of);
  for (int worker = 0; worker < 2; ++worker)
    std::fill_n(rank.pointers[static_cast<size_t>(worker)], 3, 1.f + 6.f * static_cast<float>(worker));
  const StepReport report = rank.run(0);
  CHECK(report.grad_norm == Approx(std::sqrt((3 * 1 + 3 * 49) / 2.0)));
  CHECK(report.dense_bytes == 4 * (288 + 8 + 1230 + 30));
  // 3 of 288 and 12 of 1230: header 48, 4 + 6 -> 12 + 12 = 24, 4 + 24 + 48 = 76, together 100 -> 112; 38 floats dense.
  CHECK(report.sent_bytes == 48 + 112 + 4 * 38);
  CHECK(make_dgc_layout(small_layout(), 0.99, WireValues::fp32).sent_bytes() == report.sent_bytes);

  Rank dense(sgd_of);
  const StepReport dense_report = dense.step(0);
  CHECK(dense_report.sent_bytes == dense_report.dense_bytes);
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

TEST_CASE("a damaged message stops the step and names the worker", "[optim]") {
  // all_gather call 0 carries the norms, call 1 the messages of two workers, 160 bytes each.
  const auto at = GENERATE(size_t{0}, size_t{17}, size_t{50}, size_t{159}, size_t{160 + 90});
  Rank rank(dgc_of, std::make_unique<Damaging>(1, at));
  CHECK_THROWS_WITH(rank.step(6), Contains(at < 160 ? "worker 0" : "worker 1") && Contains("step 6"));
}

TEST_CASE("flush sends all that was held back, once", "[optim]") {
  const auto values = GENERATE(WireValues::fp32, WireValues::fp16);
  Rank rank([&](const OptimizerContext& context) {
    DgcOptions options;
    options.sgd.momentum = 0.9f;
    options.values = values;
    return make_dgc(context, options);
  });
  for (uint64_t step = 0; step < 4; ++step) rank.step(step);
  const auto before = rank.everything();  // weights, momentum, u, v of worker 0, u, v of worker 1
  const StepReport report = rank.optimizer->flush({rank.pointers, rank.weights, 0.5f, 0, 4});
  const auto after = rank.everything();
  CHECK(report.sent_bytes > 0);
  CHECK((after[1] == before[1] && after[2] == before[2] && after[4] == before[4]));
  for (int i = 0; i < small_layout().size(); ++i) {
    for (int64_t e = small_layout().offset(i); e < small_layout().offset(i) + small_layout().numel(i); ++e) {
      const auto at = static_cast<size_t>(e);
      const float held = before[3][at] + before[5][at];
      REQUIRE(after[0][at] == Approx(before[0][at] - 0.5f * held).margin(values == WireValues::fp32 ? 1e-6 : 2e-3));
      REQUIRE(std::fabs(after[3][at]) < (values == WireValues::fp32 ? 1e-30f : 4e-3f));
    }
  }
  CHECK_FALSE(rank.step(5).skipped);  // and on it goes
}

TEST_CASE("fp16 messages train too, and their rounding stays in v", "[optim]") {
  ClusterOptions options;
  options.local_workers = 2;
  options.steps = 10;
  const auto with = [&](WireValues values) {
    options.make = [=](const OptimizerContext& context) {
      DgcOptions dgc;
      dgc.sgd.momentum = 0.9f;
      dgc.values = values;
      return make_dgc(context, dgc);
    };
    return run_cluster(options);
  };
  const auto fp32 = with(WireValues::fp32), fp16 = with(WireValues::fp16);
  CHECK((fp32 != fp16));
  for (size_t i = 0; i < fp32.size(); ++i) REQUIRE(fp16[i] == Approx(fp32[i]).margin(0.05));
}
