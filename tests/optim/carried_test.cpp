#include <atomic>
#include <catch.hpp>

#include "kernels/cpu/cpu_backend.h"
#include "tensor/errors.h"
#include "tests/optim/on_backend.h"

// A step in two halves, with messages that the test carries.
namespace dgc {
namespace {

using namespace test;

constexpr int kCarriers = 4;
constexpr int kCarriedSteps = 6;

// Messages of some workers, of one step.
struct Delivered {
  int step;
  std::vector<int> workers;
};

struct CarriedRun {
  BackendFactory backend;
  DgcOptions options{};
  Spread spread{1, kCarriers};
  float lr = 0.1f;
  std::function<float(int worker, uint64_t step, int64_t element, float w)> gradient = gradient_at;
  // What arrives behind each step; nothing: the steps are whole.
  std::vector<std::vector<Delivered>> deliveries{};
  bool begins_random = true;  // false: with weights of zero
  const ParamLayout& layout = small_layout();
};

// Weights and, by worker, what is kept back.
struct CarriedOutcome {
  std::vector<float> weights, momentum;
  std::map<std::string, std::vector<float>> kept;
  bool operator==(const CarriedOutcome&) const = default;
};

double sparsity_of(uint64_t step) { return step < 2 ? 0.5 : 0.98; }

// One rank of a run. Ranks read each other's messages, and wait for each other in the communicator in between.
class CarryingRank {
 public:
  CarryingRank(const CarriedRun& run, Communicator& communicator, std::vector<std::vector<std::byte>>& all)
      : run_(run),
        communicator_(communicator),
        all_(all),
        backend_(run.backend.make()),
        optimizer_(make_dgc({*backend_, communicator, run.layout, run.spread.local_workers}, run.options)),
        weights_(backend_->device(), run.layout),
        record_(*backend_, communicator, run.spread.local_workers) {
    if (run.begins_random) initialize(weights_, 5);
    for (int local = 0; local < run.spread.local_workers; ++local) {
      gradients_.emplace_back(backend_->device(), run.layout);
      pointers_.push_back(gradients_.back().data());
    }
  }

  void step(uint64_t number) {
    const std::vector<float> before = to_vector(weights_);
    for (int local = 0; local < run_.spread.local_workers; ++local) {
      fill(gradients_[static_cast<size_t>(local)],
           [&](int64_t e) { return run_.gradient(first_worker() + local, number, e, before[static_cast<size_t>(e)]); });
    }
    if (run_.deliveries.empty()) {
      Stepper{*optimizer_, record_, weights_, pointers_}.step(number, run_.lr, sparsity_of(number));
      return;
    }
    optimizer_->prepare(sparsity_of(number));
    begin(number);
    record_.measure(pointers_, weights_.extent());
    const std::vector<WorkerShare> own = record_.read_local();
    std::vector<WorkerShare> shares(kCarriers);
    all_gather_host(communicator_, *backend_->device(), std::as_bytes(std::span(own)),
                    std::as_writable_bytes(std::span(shares)));
    record_.judge(shares);
    send();
    communicator_.barrier(*backend_->device());
    for (const Delivered& delivered : run_.deliveries[number]) {
      begin(static_cast<uint64_t>(delivered.step));
      receive(delivered);
      record_.finish();
      DGC_CHECK(!record_.take().skipped, "a step that is not skipped");
    }
    communicator_.barrier(*backend_->device());
  }

  void tell(CarriedOutcome& outcome) const {
    outcome.weights = to_vector(weights_);
    for (const NamedState& state : optimizer_->state()) {
      if (state.worker < 0) {
        outcome.momentum = to_vector(*state.arena);
      } else {
        outcome.kept[fmt::format("{} {}", state.name, first_worker() + state.worker)] = to_vector(*state.arena);
      }
    }
  }

 private:
  int first_worker() const { return communicator_.rank() * run_.spread.local_workers; }
  StepArgs args() const { return {pointers_, weights_, const_cast<StepRecord&>(record_)}; }
  void begin(uint64_t number) { record_.begin({number, run_.lr, false}); }

  // Messages of a step are kept in `all` at number * workers + worker.
  void send() {
    CarriedStep& carried = *optimizer_->carried();
    const auto local = static_cast<size_t>(run_.spread.local_workers);
    std::vector<std::byte> messages(carried.message_bytes() * local);
    carried.send(args(), messages);
    for (size_t i = 0; i < local; ++i) {
      const auto first = messages.begin() + static_cast<std::ptrdiff_t>(i * carried.message_bytes());
      all_[sent_ * kCarriers + static_cast<size_t>(first_worker()) + i].assign(
          first, first + static_cast<std::ptrdiff_t>(carried.message_bytes()));
    }
    ++sent_;
  }
  void receive(const Delivered& delivered) {
    std::vector<const std::byte*> from(kCarriers);
    for (const int worker : delivered.workers) {
      from[static_cast<size_t>(worker)] = all_[static_cast<size_t>(delivered.step * kCarriers + worker)].data();
    }
    optimizer_->carried()->receive(args(), from);
  }

  const CarriedRun& run_;
  Communicator& communicator_;
  std::vector<std::vector<std::byte>>& all_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Optimizer> optimizer_;
  Arena weights_;
  StepRecord record_;
  std::vector<Arena> gradients_;
  std::vector<float*> pointers_;
  size_t sent_ = 0;
};

CarriedOutcome outcome_of(const CarriedRun& run) {
  std::vector<std::unique_ptr<Communicator>> group;
  if (run.spread.ranks == 1) group.push_back(make_single_communicator());
  if (run.spread.ranks > 1) group = make_thread_communicators(run.spread.ranks);
  std::vector<std::vector<std::byte>> all(kCarriedSteps * kCarriers);
  CarriedOutcome outcome;
  std::mutex one_at_a_time;
  run_ranks(group, [&](Communicator& communicator) {
    CarryingRank rank(run, communicator, all);
    for (uint64_t step = 0; step < kCarriedSteps; ++step) rank.step(step);
    const std::lock_guard lock(one_at_a_time);
    rank.tell(outcome);
  });
  return outcome;
}

DgcOptions carried(DgcOptions options) {
  options.carried = true;
  options.transport = Transport::sparse;
  return options;
}

std::vector<std::vector<Delivered>> in_time(const std::vector<int>& workers) {
  std::vector<std::vector<Delivered>> deliveries;
  for (int step = 0; step < kCarriedSteps; ++step) deliveries.push_back({{step, workers}});
  return deliveries;
}

std::vector<std::vector<Delivered>> all_in_time() { return in_time({0, 1, 2, 3}); }

// The processor, which counts the selections of all ranks.
class SelectionCounter final : public CpuBackend {
 public:
  SelectionCounter() : CpuBackend(1, Fp32Math::exact) {}
  void dgc_compress(const DgcCompressArgs& args) override {
    ++selections;
    CpuBackend::dgc_compress(args);
  }
  static inline std::atomic<int> selections = 0;
};

}  // namespace

TEST_CASE("a step in two halves has the bits of a whole one", "[optim]") {
  const SgdOptions nesterov{.momentum = 0.9, .nesterov = true};
  const DgcOptions options = carried(
      GENERATE_COPY(DgcOptions{.sgd = nesterov}, DgcOptions{.sgd = nesterov, .small_tensors = SmallTensors::sparse},
                    DgcOptions{.wire = {WireValues::int8, WireIndices::rice}},
                    DgcOptions{.sgd = {.momentum = 0.5, .weight_decay = 1e-3, .clip_norm = 2}},
                    DgcOptions{.sgd = nesterov, .momentum_correction = false}));
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, options.small_tensors, options.wire.values, options.momentum_correction);
  if (!takes_all(backend) && (options.sgd.clip_norm || options.small_tensors == SmallTensors::sparse)) return;
  const CarriedOutcome whole = outcome_of({backend, options, {2, 2}});
  CHECK((whole == outcome_of({backend, options, {2, 2}, 0.1f, gradient_at, all_in_time()})));
  if (!takes_all(backend)) return;
  CHECK((whole == outcome_of({backend, options, {4, 1}, 0.1f, gradient_at, all_in_time()})));
}

// Without momentum, with a rate of 1 and gradients that are small whole numbers all sums are exact, so that the order
// of messages changes no bit, and none may be missing or come twice.
TEST_CASE("messages that come late change the weights by what they would have in time", "[optim]") {
  const DgcOptions options = carried(GENERATE(DgcOptions{}, DgcOptions{.small_tensors = SmallTensors::sparse},
                                              DgcOptions{.wire = {WireValues::fp32, WireIndices::rice}}));
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, options.small_tensors, options.wire.indices);
  if (!takes_all(backend) && options.wire.indices != WireIndices::rice) return;
  const auto whole_numbers = [](int worker, uint64_t step, int64_t element, float) {
    return std::round(4 * gradient_at(worker, step, element, 0));
  };
  // Worker 1 misses step 0, nobody is in time for step 1, and worker 3's messages of step 2 come last of all. Those of
  // steps 0 and 1 are applied before the sparsity changes, and with it the size of messages.
  const std::vector<std::vector<Delivered>> deliveries = {{{0, {0, 2, 3}}}, {{0, {1}}, {1, {2, 3}}, {1, {0, 1}}},
                                                          {{2, {0, 1, 2}}}, {{3, {0, 1, 2, 3}}},
                                                          {{4, {0, 1, 2}}}, {{4, {3}}, {5, {0, 1, 2, 3}}, {2, {3}}}};
  CarriedRun run{backend, options, {2, 2}, 1, whole_numbers, all_in_time(), false};
  const CarriedOutcome in_time = outcome_of(run);
  run.deliveries = deliveries;
  const CarriedOutcome late = outcome_of(run);
  CHECK((late.weights == in_time.weights));
  CHECK((late.kept == in_time.kept));
}

// Workers 0 and 3 have nothing to send, whether their messages say so or do not come.
TEST_CASE("a worker without a message counts as one that had nothing to send", "[optim]") {
  const DgcOptions options = carried(
      GENERATE(DgcOptions{.sgd = {.momentum = 0.9, .nesterov = true}},
               DgcOptions{.wire = {WireValues::fp16, WireIndices::int32}, .small_tensors = SmallTensors::sparse},
               DgcOptions{.wire = {WireValues::bf16, WireIndices::run16}},
               DgcOptions{.wire = {WireValues::int8, WireIndices::rice}}));
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name, options.wire.values, options.wire.indices);
  const bool is_first_or_last = options.wire == WireFormat{} || options.wire.values == WireValues::int8;
  if (!takes_all(backend) && !is_first_or_last) return;
  const auto two_stand_still = [](int worker, uint64_t step, int64_t element, float w) {
    return worker == 0 || worker == 3 ? 0 : gradient_at(worker, step, element, w);
  };
  const BackendFactory cpu{"cpu", [] { return make_cpu_backend(1); }};
  const CarriedOutcome truth = outcome_of({cpu, options, {2, 2}, 0.1f, two_stand_still, all_in_time()});
  CHECK((outcome_of({backend, options, {2, 2}, 0.1f, two_stand_still, in_time({1, 2})}) == truth));
}

TEST_CASE("so does one whose message would have more entries of a tensor than a block has places", "[optim]") {
  const ParamLayout layout({{"fc.weight", {2, 70'000}, {Init::Kind::normal, 0.5f}}});  // a half of them is sent
  const auto two_stand_still = [](int worker, uint64_t step, int64_t element, float w) {
    return worker == 0 || worker == 3 ? 0 : gradient_at(worker, step, element, w);
  };
  CarriedRun run{.backend = {"cpu", [] { return make_cpu_backend(1); }},
                 .options = carried({}),
                 .spread = {2, 2},
                 .gradient = two_stand_still,
                 .deliveries = all_in_time(),
                 .layout = layout};
  const CarriedOutcome truth = outcome_of(run);
  run.deliveries = in_time({1, 2});
  CHECK(outcome_of(run) == truth);
}

TEST_CASE("a worker without a message costs no selection, and no memory but for small tensors", "[optim]") {
  const BackendFactory counting{"cpu",
                                []() -> std::unique_ptr<Backend> { return std::make_unique<SelectionCounter>(); }};
  SelectionCounter::selections = 0;
  outcome_of({counting, carried({}), {2, 2}, 0.1f, gradient_at, in_time({1, 2})});
  CHECK(SelectionCounter::selections == kCarriers * kCarriedSteps);

  const auto peak_bytes = [](bool has_halves) {
    const auto backend = make_cpu_backend(1);
    const auto ranks = make_planning_communicator(2);
    DgcOptions options = carried({});
    options.carried = has_halves;
    const auto optimizer = make_dgc({*backend, *ranks, small_layout(), 2}, options);
    optimizer->prepare(0.98);
    return backend->device()->peak_bytes();
  };
  // What all workers send of the 38 elements of small tensors, and the sum of that.
  CHECK(peak_bytes(true) - peak_bytes(false) == (kCarriers + 1) * 38 * sizeof(float));
}

TEST_CASE("an optimizer that was made for whole steps has no halves", "[optim]") {
  const auto backend = make_cpu_backend(1);
  const auto alone = make_single_communicator();
  const OptimizerContext context{*backend, *alone, small_layout(), 2};
  CHECK(make_dgc(context, {})->carried() == nullptr);
  CHECK(make_sgd(context, {})->carried() == nullptr);
}

}  // namespace dgc
