#include "optim/dgc/choose_overlap.h"

#include <catch.hpp>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "tests/optim/cluster.h"
#include "tests/support/wrapped_device.h"

using namespace dgc;
using namespace dgc::test;

namespace {

struct Somewhere : WrappedDevice {
  explicit Somewhere(bool host) : is_host(host) {}
  bool on_host() const override { return is_host; }
  bool is_host;
};

// Two ranks on machines of one kind.
struct Peers : Communicator {
  std::string name() const override { return "peers"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  bool between_processes() const override { return are_processes; }
  bool recordable() const override { return false; }
  void all_gather(Device&, const void* mine, void* all, size_t bytes) override {
    for (size_t rank = 0; rank < 2; ++rank) std::memcpy(static_cast<std::byte*>(all) + rank * bytes, mine, bytes);
  }
  void gather_shards(Device&, std::span<const float* const>, float*, size_t) override {}
  void barrier(Device&) override {}
  std::unique_ptr<Communicator> split(const Ranks&) override { return nullptr; }
  void abort(const std::string&) noexcept override {}
  bool are_processes = true;
};

constexpr double kBucketEachMib = 0.0001;  // MiB
const std::string kOn = "gradients are compressed and exchanged in 2 buckets while others are computed";
const std::string kOff = "exchange.overlap: off, as ";

}  // namespace

TEST_CASE("overlap is chosen between processes on CPUs, and where it is not the reason is said", "[optim]") {
  struct Case {
    std::string text;
    DgcOptions options{};
    double mib = kBucketEachMib;
    int64_t workers_per_group = 1;
    bool on_host = true;
  };
  const auto c = GENERATE(
      Case{kOn},
      Case{kOff + "optimizer.clip_norm needs all gradients before the first is compressed", {.sgd = {.clip_norm = 1}}},
      Case{kOff + "exchange.transport is \"dense\"", {.transport = Transport::dense}},
      Case{kOff + "exchange.algorithm is \"split_reduce\"", {.algorithm = ExchangeAlgorithm::split_reduce}},
      Case{kOff + "a group's gradient is known after all of its workers'", {}, kBucketEachMib, 2},
      Case{kOff + "the whole gradient is one bucket (exchange.bucket_mb = 0.5)", {}, 0.5},
      Case{kOff + "it has not run between several GPUs yet; \"on\" switches it on there too",
           {},
           kBucketEachMib,
           1,
           false});
  CpuBackend backend(1, Fp32Math::exact, std::make_shared<Somewhere>(c.on_host));
  Peers peers;
  const OptimizerContext context{backend, peers, small_layout(), 4};
  const OverlapChoice choice = choose_overlap(c.options, c.mib, context, c.workers_per_group);
  CHECK(choice.text == c.text);
  CHECK(choice.bucket_bytes == (c.text == kOn ? std::optional<int64_t>(105) : std::nullopt));
}

TEST_CASE("within a process nothing overlaps, without a word", "[optim]") {
  CpuBackend backend(1, Fp32Math::exact);
  Peers peers;
  peers.are_processes = false;
  const auto single = make_single_communicator();
  for (Communicator* communicator : {static_cast<Communicator*>(&peers), single.get()}) {
    const OverlapChoice choice = choose_overlap({}, kBucketEachMib, {backend, *communicator, small_layout(), 4}, 1);
    CHECK(choice.text.empty());
    CHECK_FALSE(choice.bucket_bytes);
  }
}
