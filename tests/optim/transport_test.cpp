#include <catch.hpp>

#include "optim/dgc/layout.h"
#include "tests/optim/on_backend.h"
#include "tests/support/all_of.h"

// exchange.transport changes what travels and nothing else.
using namespace dgc;
using namespace dgc::test;

namespace {

struct TransportVariant {
  WireFormat wire;
  float weight_decay = 0;
  bool momentum_correction = true;
  SmallTensors small_tensors = SmallTensors::dense;
};

ClusterOptions cluster(const TransportVariant& variant, Transport transport, Spread spread) {
  DgcOptions dgc;
  dgc.sgd.momentum = 0.9f;
  dgc.sgd.nesterov = true;
  dgc.sgd.weight_decay = variant.weight_decay;
  dgc.momentum_correction = variant.momentum_correction;
  dgc.wire = variant.wire;
  dgc.small_tensors = variant.small_tensors;
  dgc.small_tensors_sparsity = 0.9;
  dgc.transport = transport;
  return dgc_cluster(dgc, spread, [](uint64_t step) { return step < 2 ? 0.75 : step < 4 ? 0.5 : 0.98; });
}

}  // namespace

TEST_CASE("a dense sum of what is sent gives the bits of the messages, in every format", "[optim]") {
  TransportVariant variant;
  variant.wire.values = GENERATE(from_range(all_of<WireValues>()));
  variant.wire.indices = variant.wire.values == WireValues::int8 ? WireIndices::rice : WireIndices::block16;
  variant.weight_decay = GENERATE(0.f, 1e-3f);
  variant.momentum_correction = GENERATE(true, false);
  const auto backend = GENERATE(from_range(kernel_backends()));
  // What the rules of momentum change, "every backend gives the processor's bits, with every switch" shows.
  if (!takes_all(backend) && (variant.weight_decay == 0 || !variant.momentum_correction)) return;
  CAPTURE(backend.name, variant.wire.values, variant.weight_decay, variant.momentum_correction);
  const auto sparse = run_cluster(cluster(variant, Transport::sparse, {1, 4}));
  CHECK((run_cluster(cluster(variant, Transport::dense, {1, 4})) == sparse));
  CHECK((run_cluster(cluster(variant, Transport::dense, {4, 1})) == sparse));
  CHECK((run_cluster(on(backend, cluster(variant, Transport::dense, {2, 2}))) == sparse));
}

TEST_CASE("a dense sum gives the bits of the messages also where small tensors are one of them", "[optim]") {
  TransportVariant variant;
  variant.small_tensors = GENERATE(SmallTensors::sparse, SmallTensors::dense_fp16);
  const auto sparse = run_cluster(cluster(variant, Transport::sparse, {1, 3}));
  CHECK((run_cluster(cluster(variant, Transport::dense, {3, 1})) == sparse));
}

TEST_CASE("auto decides anew for each sparsity, says so, and changes no bit", "[optim]") {
  const auto of_step = [](uint64_t step) { return step % 3 == 0 ? 0.75 : 0.98; };  // back and forth
  ClusterOptions options = cluster({}, Transport::automatic, {4, 2});
  options.sparsity = of_step;
  options.after = [&](int, uint64_t step, Optimizer&, const Arena&, const StepReport& report) {
    // 1518 of 1556 parameters are compressed; 38 travel dense in any case.
    const bool dense = step % 3 == 0;
    CHECK((report.bytes.travel == (dense ? Travel::dense : Travel::sparse)));
    CHECK(report.bytes.sent == (dense ? 4 * 1518 : 48 + 208) + 4 * 38);
    CHECK(report.bytes.dense == 4 * 1556);
  };
  const auto automatic = run_cluster(options);
  options = cluster({}, Transport::sparse, {1, 8});
  options.sparsity = of_step;
  CHECK((run_cluster(options) == automatic));
}

TEST_CASE("auto weighs all messages against a ring's 8 bytes per element", "[optim]") {
  const auto layout = [](Transport transport, double sparsity, int64_t workers) {
    return make_dgc_layout(small_layout(), {.transport = transport}, sparsity, workers);
  };
  // 72 of 288 and 308 of 1230: 48 + (4 + 144 + 288) + (4 + 616 + 1232) = 2336 bytes; 8 x 1518 = 12144.
  const DgcLayout five = layout(Transport::automatic, 0.75, 5), six = layout(Transport::automatic, 0.75, 6);
  CHECK(five.wire.message_bytes() == 2336);
  CHECK((five.travel == Travel::sparse && six.travel == Travel::dense));
  CHECK((five.sent_bytes() == 2336 + 152 && six.sent_bytes() == 4 * 1518 + 152));
  CHECK((layout(Transport::automatic, 0.98, 6).travel == Travel::sparse));
  CHECK((layout(Transport::automatic, 0.98, 60).travel == Travel::dense));  // 256 x 60 = 15360
  CHECK((layout(Transport::automatic, 0, 1).travel == Travel::sparse));     // nothing to gain
  CHECK((layout(Transport::sparse, 0, 60).travel == Travel::sparse));
  CHECK((layout(Transport::dense, 0.98, 2).travel == Travel::dense));

  const ParamLayout no_tensors({{"bias", {8}, {}}});
  CHECK((make_dgc_layout(no_tensors, {.transport = Transport::dense}, 0).travel == Travel::sparse));
}

TEST_CASE("a flush after dense steps leaves nothing behind", "[optim]") {
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  const auto optimizer = cluster({}, Transport::dense, {1, 1}).make({*backend, *communicator, small_layout(), 1});
  const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
  initialize(weights, 5);
  float* const pointers[] = {gradient.data()};
  StepRecord record(*backend, *communicator, 1);
  const Stepper stepper{*optimizer, record, weights, pointers};
  for (uint64_t step = 0; step < 3; ++step) {
    for_elements(small_layout(), [&](int64_t e) { gradient.data()[e] = gradient_at(0, step, e, 0); });
    stepper.step(step, 0.1f, 0.98);
  }
  CHECK((stepper.flush(3, 0.1f).bytes.travel == Travel::sparse));
  for (const NamedState& state : optimizer->state()) {
    if (state.name != "v") continue;
    for (int64_t e = 0; e < small_layout().small_offset(); ++e) REQUIRE(state.arena->data()[e] == 0);
  }
  for_elements(small_layout(), [&](int64_t e) { gradient.data()[e] = gradient_at(0, 4, e, 0); });
  CHECK((stepper.step(4, 0.1f, 0.98).bytes.travel == Travel::dense));  // and on it goes
}

TEST_CASE("a step that is skipped changes nothing where sums travel", "[optim]") {
  const auto backend = make_cpu_backend(1);
  const auto communicator = make_single_communicator();
  TransportVariant variant;
  variant.weight_decay = 1e-3f;
  const auto optimizer = cluster(variant, Transport::dense, {1, 1}).make({*backend, *communicator, small_layout(), 1});
  const Arena weights(backend->device(), small_layout()), gradient(backend->device(), small_layout());
  initialize(weights, 5);
  float* const pointers[] = {gradient.data()};
  StepRecord record(*backend, *communicator, 1);
  const Stepper stepper{*optimizer, record, weights, pointers};
  const auto everything = [&] {
    std::vector<std::vector<float>> all = {to_vector(weights)};
    for (const NamedState& state : optimizer->state()) all.push_back(to_vector(*state.arena));
    return all;
  };
  for_elements(small_layout(), [&](int64_t e) { gradient.data()[e] = gradient_at(0, 0, e, 0); });
  stepper.step(0, 0.1f, 0.75);
  const auto before = everything();
  gradient.data()[0] = INFINITY;
  CHECK(stepper.step(1, 0.1f, 0.75).skipped);
  CHECK((everything() == before));
}
