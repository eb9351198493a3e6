#include "optim/dgc/exchange.h"

#include <catch.hpp>

#include "optim/dgc/gather.h"
#include "optim/dgc/masked_sum.h"
#include "optim/dgc/overlap.h"
#include "optim/dgc/split_reduce.h"
#include "tests/optim/cluster.h"

using namespace dgc;
using namespace dgc::test;

namespace {

constexpr int kWorkers = 8;

struct Fixture {
  std::unique_ptr<Backend> backend = make_cpu_backend(1);
  std::unique_ptr<Communicator> communicator = make_single_communicator();
  OptimizerContext context{*backend, *communicator, small_layout(), kWorkers};
  std::vector<Arena> v;
  Fixture() {
    for (int worker = 0; worker < kWorkers; ++worker) v.emplace_back(backend->device(), small_layout());
  }
  std::vector<Residuals> residuals() {
    std::vector<Residuals> all;
    for (Arena& arena : v) all.push_back({&arena, nullptr});
    return all;
  }
};

template <class Strategy>
bool is(const Exchange& exchange) {
  return dynamic_cast<const Strategy*>(&exchange) != nullptr;
}

}  // namespace

TEST_CASE("every layout has its strategy, one after another", "[optim]") {
  Fixture fixture;
  Exchanges exchanges(fixture.context, fixture.residuals());
  const auto choose = [&](const DgcLayout& layout) -> const Exchange& {
    exchanges.lay_out(layout);
    CHECK(exchanges.current().sent_bytes() >= layout.compressed_bytes());  // buckets have headers of their own
    return exchanges.current();
  };
  const auto layout = [](const DgcOptions& options, double sparsity) {
    return make_dgc_layout(small_layout(), options, sparsity, kWorkers);
  };
  const DgcOptions split{.algorithm = ExchangeAlgorithm::split_reduce};
  const DgcOptions overlap{.bucket_bytes = 1}, both{.algorithm = split.algorithm, .bucket_bytes = 1};
  CHECK(is<Gather>(choose(layout({}, 0.98))));
  CHECK(is<MaskedSum>(choose(layout({}, 0.5))));
  CHECK(is<SplitReduce>(choose(layout(split, 0.98))));
  CHECK(is<MaskedSum>(choose(layout(split, 0.5))));
  CHECK(is<OverlappedGather>(choose(layout(overlap, 0.98))));
  CHECK(is<MaskedSum>(choose(layout(overlap, 0.5))));
  CHECK(is<SplitReduce>(choose(layout(both, 0.98))));
  for (const DgcOptions& options : {DgcOptions{.transport = Transport::dense}, split, overlap}) {
    CHECK(is<Gather>(choose(make_flush_layout(small_layout(), options))));
  }
}

TEST_CASE("one worker gathers what it would split", "[optim]") {
  Fixture fixture;
  Exchanges exchanges(fixture.context, {});
  exchanges.lay_out(make_dgc_layout(small_layout(), {.algorithm = ExchangeAlgorithm::split_reduce}, 0.98, 1));
  CHECK(is<Gather>(exchanges.current()));
  CHECK_FALSE(exchanges.time());
}
