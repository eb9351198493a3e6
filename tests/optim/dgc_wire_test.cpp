#include <catch.hpp>
#include <map>

#include "dist/wire.h"
#include "optim/dgc/layout.h"
#include "tests/optim/on_backend.h"
#include "tests/support/all_of.h"

// What exchange.wire may change, and what not.
using namespace dgc;
using namespace dgc::test;

namespace {

const std::vector<WireValues> kValues = all_of<WireValues>();
const std::vector<WireIndices> kIndices = all_of<WireIndices>();

ClusterOptions cluster(WireFormat wire, int ranks, int local_workers) {
  ClusterOptions options;
  options.ranks = ranks;
  options.local_workers = local_workers;
  options.steps = 6;
  options.sparsity = [](uint64_t step) { return step < 2 ? 0.75 : 0.98; };
  options.make = [wire](const OptimizerContext& context) {
    DgcOptions dgc;
    dgc.sgd.momentum = 0.9f;
    dgc.sgd.weight_decay = 1e-3f;
    dgc.wire = wire;
    return make_dgc(context, dgc);
  };
  return options;
}

}  // namespace

TEST_CASE("weights do not depend on how workers are spread over ranks, in any format", "[optim]") {
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name);
  std::map<WireValues, std::vector<float>> by_values;
  for (const WireValues values : kValues) {
    for (const WireIndices indices : kIndices) {
      CAPTURE(values, indices);
      const auto alone = run_cluster(cluster({values, indices}, 1, 4));
      CHECK((run_cluster(cluster({values, indices}, 4, 1)) == alone));
      // Values and indices are coded apart from each other: each of either once shows as much as all pairs.
      if (takes_all(backend) || static_cast<int>(values) == static_cast<int>(indices)) {
        CHECK((run_cluster(on(backend, cluster({values, indices}, 2, 2))) == alone));
      }
      // The indices' format changes bytes alone.
      if (const auto [known, is_new] = by_values.emplace(values, alone); !is_new) CHECK((known->second == alone));
    }
  }
  // The values' format changes what is sent now and what later.
  for (const WireValues values : kValues) {
    if (values != WireValues::fp32) CHECK((by_values[WireValues::fp32] != by_values[values]));
  }
}

TEST_CASE("in a first step, rounding moves weights by what the format may take away", "[optim]") {
  ClusterOptions options = cluster(kCanonicalWire, 1, 4);
  options.steps = 1;
  const auto fp32 = run_cluster(options);
  // All send the same elements. Four workers' gradients / 4 are at most 5 / 4; of a v, 2^-11 and 2^-8 may be missing;
  // with int8 1/254 of the largest, and 2^-7 more of that.
  const double most_sent = 5;
  for_elements(small_layout(), [&](int64_t e) { REQUIRE(std::fabs(gradient_at(0, 0, e, 1.5f)) < most_sent); });
  const std::pair<WireValues, double> takes[] = {
      {WireValues::fp16, 0x1p-11}, {WireValues::bf16, 0x1p-8}, {WireValues::int8, (1 + 0x1p-7) / 254}};
  for (const auto& [values, part] : takes) {
    ClusterOptions rounding = cluster({values, WireIndices::rice}, 1, 4);
    rounding.steps = 1;
    const auto rounded = run_cluster(rounding);
    double worst = 0;
    for (size_t i = 0; i < fp32.size(); ++i) worst = std::max(worst, std::fabs(double{fp32[i]} - double{rounded[i]}));
    CAPTURE(values);
    CHECK(worst > 0);
    CHECK(worst <= double{options.lr} * most_sent * part * 1.001);
  }
}

TEST_CASE("nothing is lost on the wire, in any format", "[optim]") {
  // Plain accumulation and plain SGD: after every step, what has moved the weights and what the workers still hold are
  // together all gradients there ever were.
  const auto backend = GENERATE(from_range(kernel_backends()));
  CAPTURE(backend.name);
  for (const WireValues values : kValues) {
    for (const WireIndices indices : kIndices) {
      if (!takes_all(backend) && indices != (values == WireValues::fp32 ? WireIndices::int32 : WireIndices::rice))
        continue;
      CAPTURE(values, indices);
      ClusterOptions options = on(backend, cluster({values, indices}, 2, 2));
      options.lr = 1;
      options.make = [=](const OptimizerContext& context) {
        DgcOptions dgc;
        dgc.wire = {values, indices};
        return make_dgc(context, dgc);
      };
      std::vector<double> held, gone;
      int ranks_seen = 0;
      options.after = [&](int, uint64_t step, Optimizer& optimizer, const Arena& weights, const StepReport&) {
        if (step != 5) return;
        held.resize(static_cast<size_t>(weights.extent()));
        for (const NamedState& state : optimizer.state()) {
          if (state.name != "v") continue;
          const std::vector<float> v = to_vector(*state.arena);
          for (size_t i = 0; i < held.size(); ++i) held[i] += double{v[i]};
        }
        const std::vector<float> w = to_vector(weights);
        if (++ranks_seen == 2) gone.assign(w.begin(), w.end());
      };
      run_cluster(options);

      // The same gradients once more, on the weights that each step began with.
      std::vector<double> total(held.size());
      std::vector<std::vector<float>> history;
      ClusterOptions again = options;
      again.after = [&](int rank, uint64_t, Optimizer&, const Arena& weights, const StepReport&) {
        if (rank == 0) history.push_back(to_vector(weights));
      };
      run_cluster(again);
      history.insert(history.begin(), initial_weights());
      for (uint64_t step = 0; step < 6; ++step) {
        for (int worker = 0; worker < 4; ++worker) {
          for_elements(small_layout(), [&](int64_t e) {
            const auto i = static_cast<size_t>(e);
            total[i] += double{gradient_at(worker, step, e, history[step][i])} / 4;
          });
        }
      }
      for (int tensor : {0, 2}) {
        for (int64_t e = 0; e < small_layout().numel(tensor); ++e) {
          const auto i = static_cast<size_t>(small_layout().offset(tensor) + e);
          REQUIRE(double{history[0][i]} - gone[i] + held[i] == Approx(total[i]).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("what is reported as sent is what travels", "[optim]") {
  const WireFormat rice{WireValues::fp16, WireIndices::rice};
  int64_t sent = 0;
  ClusterOptions options = cluster(rice, 1, 1);
  options.after = [&](int, uint64_t, Optimizer&, const Arena&, const StepReport& report) { sent = report.bytes.sent; };
  run_cluster(options);
  // 6 of 288 and 25 of 1230; 38 floats dense. b = 5 of 282 zeros and of 1205: 6 + 8 and 25 + 37 quotient bits, 30 and
  // 125 of remainders: 4 + 4 + 12 and 8 + 16 + 50 bytes, together 20 + 74 = 94 -> 96.
  CHECK(sent == 48 + 96 + 4 * 38);
  const DgcLayout layout = make_dgc_layout(small_layout(), {.wire = rice}, 0.98);
  CHECK(layout.sent_bytes() == sent);
  CHECK((layout.is_coded() && layout.canonical.format() == kCanonicalWire));
  CHECK_FALSE(make_dgc_layout(small_layout(), {}, 0.98).is_coded());
}
