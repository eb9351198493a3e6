#include <algorithm>
#include <catch.hpp>
#include <limits>

#include "tests/optim/cluster.h"
#include "tests/optim/recording_backend.h"

// A backend may record a step once and replay it, which runs none of the optimizer's code. The truth is the same
// training without overlap, on a backend that records nothing.
using namespace dgc;
using namespace dgc::test;

namespace {

constexpr int kReplayWorkers = 4;
constexpr uint64_t kReplaySteps = 17;
constexpr uint64_t kBroken[] = {1, 7, 10, 11, 16};  // steps in which a gradient of worker 2 is not finite

// Three steps each at 75 % and 50 %, so that a phase does not always begin on the same side.
double sparsity_at_step(uint64_t step) { return step < 3 ? 0.75 : step < 6 ? 0.5 : 0.98; }

std::vector<float> read(const Arena& arena) {
  std::vector<float> values(static_cast<size_t>(arena.extent()));
  arena.device().copy_out(values.data(), arena.data(), arena.bytes());
  return values;
}

void write_gradient(const Arena& gradient, int worker, uint64_t step, const std::vector<float>& weights) {
  std::vector<float> values(weights.size());
  for_elements(small_layout(), [&](int64_t e) {
    values[static_cast<size_t>(e)] = gradient_at(worker, step, e, weights[static_cast<size_t>(e)]);
  });
  const bool is_broken = worker == 2 && std::ranges::find(kBroken, step) != std::end(kBroken);
  if (is_broken) values[step % 2 == 0 ? 7 : 1000] = step < 8 ? std::numeric_limits<float>::infinity() : std::nanf("");
  gradient.device().copy_in(gradient.data(), values.data(), gradient.bytes());
}

struct History {
  std::vector<std::vector<float>> after;  // each step: weights, then all that the optimizer holds
  std::vector<uint64_t> keys;
  int skipped = 0;
  int64_t timed_steps = 0;
};

History train(Backend& backend, const DgcOptions& options) {
  const auto communicator = make_single_communicator();
  const auto optimizer = make_dgc({backend, *communicator, small_layout(), kReplayWorkers}, options);
  const Arena weights(backend.device(), small_layout());
  initialize(weights, 5);
  std::vector<Arena> gradients;
  std::vector<float*> pointers;
  for (int worker = 0; worker < kReplayWorkers; ++worker) {
    gradients.emplace_back(backend.device(), small_layout());
    pointers.push_back(gradients.back().data());
  }
  StepRecord record(backend, *communicator, kReplayWorkers);
  const StepArgs args{pointers, weights, record};
  const auto body = [&] {
    optimizer->begin(args);
    for (int worker = 0; worker < kReplayWorkers; ++worker) {
      for (int param = small_layout().size(); param-- > 0;) optimizer->ready(worker, param);
    }
    record.measure(pointers, weights.extent());
    optimizer->settle();
    record.judge();
    optimizer->step(args);
  };

  History history;
  for (uint64_t step = 0; step < kReplaySteps; ++step) {
    const std::vector<float> before = read(weights);
    for (int worker = 0; worker < kReplayWorkers; ++worker) {
      write_gradient(gradients[static_cast<size_t>(worker)], worker, step, before);
    }
    history.keys.push_back(optimizer->prepare(sparsity_at_step(step)));
    record.begin({step, 0.1f, false});
    backend.run_recorded({history.keys.back()}, body);
    record.finish();
    history.skipped += record.take().skipped ? 1 : 0;
    history.after.push_back(read(weights));
    for (const NamedState& state : optimizer->state()) {
      const std::vector<float> values = read(*state.arena);
      history.after.back().insert(history.after.back().end(), values.begin(), values.end());
    }
  }
  if (optimizer->exchange_time()) history.timed_steps = optimizer->exchange_time()->steps;
  return history;
}

DgcOptions dgc_options() {
  DgcOptions options;
  options.sgd.momentum = 0.9f;
  options.sgd.nesterov = true;
  options.sgd.weight_decay = 1e-3f;
  options.transport = GENERATE(Transport::sparse, Transport::automatic);  // automatic: a dense sum at 50 %
  options.small_tensors = GENERATE(SmallTensors::dense, SmallTensors::dense_fp16, SmallTensors::sparse);
  const bool is_coded = options.transport == Transport::sparse && options.small_tensors != SmallTensors::dense;
  if (is_coded) options.wire = {WireValues::fp16, WireIndices::rice};
  options.momentum_correction = options.small_tensors != SmallTensors::sparse;
  return options;
}

void check_overlap(Backend& backend, DgcOptions options) {
  options.bucket_bytes.reset();
  const auto plain = make_cpu_backend(1);
  const History truth = train(*plain, options);
  REQUIRE(truth.skipped == static_cast<int>(std::size(kBroken)));
  CHECK(truth.timed_steps == 0);
  options.bucket_bytes = 1;  // every tensor by itself
  const History found = train(backend, options);
  CHECK(found.skipped == truth.skipped);
  for (uint64_t step = 0; step < kReplaySteps; ++step) {
    CAPTURE(step);
    REQUIRE((found.after[step] == truth.after[step]));
  }
  // The host sees a step in two only; the clock is read in all that overlap.
  CHECK(found.timed_steps ==
        static_cast<int64_t>(options.transport == Transport::sparse ? kReplaySteps : kReplaySteps - 3));
  for (uint64_t step = 6; step + 2 < kReplaySteps; ++step) {
    CHECK(found.keys[step] != found.keys[step + 1]);
    CHECK(found.keys[step] == found.keys[step + 2]);
  }
}

}  // namespace

TEST_CASE("overlapped steps that are recorded once and replayed give the same bits, whatever goes first", "[optim]") {
  const DgcOptions options = dgc_options();
  const LaneOrder order = GENERATE(LaneOrder::at_once, LaneOrder::when_waited_for);
  CAPTURE(options.transport, options.small_tensors, order);
  RecordingBackend backend(order);
  check_overlap(backend, options);
}

TEST_CASE("overlapped steps on a GPU give the CPU's bits without", "[optim]") {
  if (cuda_devices().empty()) {
    WARN("skipped: " << cuda_description());
    return;
  }
  const DgcOptions options = dgc_options();
  CAPTURE(options.transport, options.small_tensors);
  const auto backend = make_cuda_backend(0, Fp32Math::exact);
  check_overlap(*backend, options);
}
