#include "optim/step_record.h"

#include <catch.hpp>
#include <cmath>

#include "tensor/errors.h"
#include "tests/kernels/kernel_backends.h"

using namespace dgc;

namespace {

// One of two ranks whose collectives a GPU queues, of which the other one may have died.
struct LosesPeer final : Communicator {
  std::string name() const override { return "loses a peer"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  bool between_processes() const override { return true; }
  bool recordable() const override { return true; }
  void all_gather(Device&, const void*, void*, size_t) override {}
  void gather_shards(Device&, std::span<const float* const>, float*, size_t) override {}
  void barrier(Device&) override {}
  std::unique_ptr<Communicator> split(const Ranks&) override { return nullptr; }
  void check() override {
    if (lost) throw PeerFailed("rank 1 has died");
  }
  void abort(const std::string&) noexcept override {}
  bool lost = false;
};

}  // namespace

// NCCL's work ends at once when a peer is lost, and then all that was queued behind it is done too.
TEST_CASE("what a step reports after a peer was lost is no result, though the device has done all of it", "[optim]") {
  const auto backend = kernel_backends().front().make();
  LosesPeer communicator;
  StepRecord record(*backend, communicator, 1);
  for (const bool lost : {false, true}) {
    record.begin({lost ? 1u : 0u, 0.5f, false});
    record.finish();
    backend->device()->synchronize();
    communicator.lost = lost;
    if (lost) {
      CHECK_THROWS_WITH(record.take(), "rank 1 has died");
    } else {
      CHECK(record.take().step == 0);
    }
  }
}

TEST_CASE("the norm of a step is the mean over those workers that are there") {
  const auto backend = make_cpu_backend(1);
  const auto alone = make_single_communicator();
  StepRecord record(*backend, *alone, 4);
  record.begin({0, 0.1f, false});
  WorkerShare a, b;
  a.square = 9;
  b.square = 7;
  record.judge(std::vector<WorkerShare>{a, b});
  record.finish();
  CHECK(record.take().grad_norm == Approx(std::sqrt(8.0)));
}

TEST_CASE("a message of another program or config is the user's to mend, a damaged one is not") {
  const auto backend = make_cpu_backend(1);
  const auto alone = make_single_communicator();
  StepRecord record(*backend, *alone, 1);
  const auto take_with = [&](WireFaultKind kind) {
    StepControl control;
    control.fault.kind = kind;
    record.restore_control(control);
    record.finish();
    record.take();
  };
  for (const auto kind : {WireFaultKind::version, WireFaultKind::format, WireFaultKind::layout}) {
    CHECK_THROWS_AS(take_with(kind), UserError);
  }
  CHECK_THROWS_AS(take_with(WireFaultKind::checksum), PeerFailed);
}
