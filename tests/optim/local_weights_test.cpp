// Steps that workers take on weights of their own, and the exchange of what these have moved by, with numbers worked
// out by hand. All of them are exact in fp32.
#include "optim/local_weights.h"

#include "tests/kernels/on_device.h"
#include "tests/optim/on_backend.h"

using namespace dgc;
using namespace dgc::test;

namespace {

constexpr int kOwnWorkers = 2, kOwnSteps = 2;

// A matrix, of which one element in four is sent, and a bias, which travels dense.
const ParamLayout& matrix_and_bias() {
  static const ParamLayout layout(
      {{"matrix", {1, 4}, {Init::Kind::constant, 1.f}}, {"bias", {1}, {Init::Kind::constant, 1.f}}});
  return layout;
}

// The gradient of each worker, in every step.
const std::vector<std::vector<float>> kGradients = {{4, 0, 2, 0, 2}, {0, 8, 0, -2, 4}};

std::vector<float> values_of(const Arena& arena) {
  std::vector<float> values;
  for_elements(arena.layout(),
               [&, all = to_vector(arena)](int64_t e) { values.push_back(all[static_cast<size_t>(e)]); });
  return values;
}

struct Round {
  std::vector<float> weights;
  std::vector<std::vector<float>> moved, kept;  // per worker: what its weights moved by, and v behind the exchange
  bool operator==(const Round&) const = default;
};

// Rounds of two steps with momentum 1/2 at the learning rate 1/2. What rank 0 has of every worker.
std::vector<Round> rounds(const BackendFactory& backends, const SgdOptions& outer, float outer_rate, Spread spread) {
  const ParamLayout& layout = matrix_and_bias();
  std::vector<Round> all(
      2, Round{{}, std::vector<std::vector<float>>(kOwnWorkers), std::vector<std::vector<float>>(kOwnWorkers)});
  auto group =
      spread.ranks == 1 ? std::vector<std::unique_ptr<Communicator>>() : make_thread_communicators(spread.ranks);
  if (spread.ranks == 1) group.push_back(make_single_communicator());
  std::mutex one_at_a_time;
  run_ranks(group, [&](Communicator& communicator) {
    const auto backend = backends.make();
    DgcOptions options;
    options.sgd = outer;
    options.transport = Transport::sparse;
    const auto optimizer = make_dgc({*backend, communicator, layout, spread.local_workers}, options);
    const Arena shared(backend->device(), layout);
    initialize(shared, 1);
    StepRecord record(*backend, communicator, spread.local_workers);
    const ValuesOnDevice<StepControl> own_steps(*backend, {StepControl{.lr = 0.5f}});
    std::vector<LocalWeights> own;
    std::vector<Arena> gradients;
    std::vector<float*> pointers;
    for (int local = 0; local < spread.local_workers; ++local) {
      own.emplace_back(*backend, layout, layout, SgdOptions{.momentum = 0.5});
      gradients.emplace_back(backend->device(), layout);
      pointers.push_back(gradients.back().data());
    }
    for (size_t round = 0; round < all.size(); ++round) {
      for (int local = 0; local < spread.local_workers; ++local) {
        const auto worker = static_cast<size_t>(communicator.rank() * spread.local_workers + local);
        const auto l = static_cast<size_t>(local);
        own[l].begin(shared);
        for (int step = 0; step < kOwnSteps; ++step) {
          size_t next = 0;
          std::vector<float> values(static_cast<size_t>(layout.extent()));
          for_elements(layout, [&](int64_t e) { values[static_cast<size_t>(e)] = kGradients[worker][next++]; });
          backend->device()->copy_in(gradients[l].data(), values.data(), gradients[l].bytes());
          own[l].step(gradients[l].data(), own_steps.data());
        }
        own[l].write_moved(shared, gradients[l].data());
        const std::lock_guard lock(one_at_a_time);
        all[round].moved[worker] = values_of(gradients[l]);
      }
      Stepper{*optimizer, record, shared, pointers}.step(round, outer_rate, 0.75);
      const std::lock_guard lock(one_at_a_time);
      for (const NamedState& state : optimizer->state()) {
        const auto worker = static_cast<size_t>(communicator.rank() * spread.local_workers + state.worker);
        if (state.name == "v") all[round].kept[worker] = values_of(*state.arena);
      }
      all[round].weights = values_of(shared);
    }
  });
  return all;
}

}  // namespace

// With a gradient g in both steps of a round and a momentum of 1/2 the first round moves a worker's weights by
// (1 + 3/2) g / 2 = 1.25 g, and the second one, to which the momentum goes on, by (7/4 + 15/8) g / 2 = 1.8125 g.
TEST_CASE("two workers exchange what their own weights have moved by, and keep what is not sent", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  const Spread spread = GENERATE(Spread{1, 2}, Spread{2, 1});
  CAPTURE(backend.name, spread.ranks);
  const auto got = rounds(backend, {}, 1, spread);
  CHECK((got[0] == Round{.weights = {-1.5f, -4, 1, 1, -2.75f},
                         .moved = {{5, 0, 2.5f, 0, 2.5f}, {0, 10, 0, -2.5f, 5}},
                         .kept = {{0, 0, 1.25f, 0, 0}, {0, 0, 0, -1.25f, 0}}}));
  CHECK((got[1] == Round{.weights = {-5.125f, -11.25f, 1, 1, -8.1875f},
                         .moved = {{7.25f, 0, 3.625f, 0, 3.625f}, {0, 14.5f, 0, -3.625f, 7.25f}},
                         .kept = {{0, 0, 3.0625f, 0, 0}, {0, 0, 0, -3.0625f, 0}}}));
}

// The outer momentum of what was kept is 1/2 * 1.25 + 3.625 / 2 = 2.4375 in the second round, so that worker 0 holds
// back 3.6875 of its third element and 3.625 of its first: now the third one is sent.
TEST_CASE("the step of an exchange has a rate and a momentum of its own, and masks it", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  const Spread spread = GENERATE(Spread{1, 2}, Spread{2, 1});
  CAPTURE(backend.name, spread.ranks);
  const auto got = rounds(backend, {.momentum = 0.5}, 0.5f, spread);
  CHECK((got[0].weights == std::vector<float>{-0.25f, -1.5f, 1, 1, -0.875f}));
  CHECK((got[1].weights == std::vector<float>{-0.25f, -5.125f, -0.84375f, 1, -4.53125f}));
  CHECK((got[1].kept == std::vector<std::vector<float>>{{3.625f, 0, 0, 0, 0}, {0, 0, 0, -3.6875f, 0}}));
}

TEST_CASE("a worker's own steps clip its own gradient, and a round that is skipped forgets their momentum", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  const ParamLayout& layout = matrix_and_bias();
  const Arena shared(backend->device(), layout), gradient(backend->device(), layout), zeros(backend->device(), layout);
  LocalWeights own(*backend, layout, layout, {.momentum = 0.5, .clip_norm = 1});
  own.begin(shared);
  const std::vector<float> g = {3, 0, 0, 0, 4};  // a norm of 5
  size_t next = 0;
  fill(gradient, [&](int64_t) { return g[next++]; });
  const ValuesOnDevice<StepControl> good(*backend, {StepControl{.lr = 1}}), skipped(*backend, {StepControl{.skip = 1}});
  own.step(gradient.data(), good.data());
  const auto moved = values_of(own.weights());
  CHECK(moved[0] == Approx(-0.6).epsilon(1e-5));
  CHECK(moved[4] == Approx(-0.8).epsilon(1e-5));
  const auto momentum = values_of(*own.momentum());
  own.settle(good.data(), zeros.data());
  CHECK(values_of(*own.momentum()) == momentum);
  own.settle(skipped.data(), zeros.data());
  CHECK(values_of(*own.momentum()) == std::vector<float>(5));
}
