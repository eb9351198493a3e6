#include "dist/communicator.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

class SingleCommunicator final : public Communicator {
 public:
  std::string name() const override { return "single"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  bool between_processes() const override { return false; }
  bool recordable() const override { return true; }

  void all_gather(Device& device, const void* mine, void* all, size_t bytes) override {
    if (bytes > 0) device.copy(all, mine, bytes);
  }
  void gather_shards(Device& device, std::span<const float* const> local_workers, float* mine, size_t n) override {
    DGC_CHECK(!local_workers.empty(), "a rank without workers");
    const size_t row = shard_size(n, 1);
    for (const float* worker : local_workers) {
      if (n > 0) device.copy(mine, worker, n * sizeof(float));
      mine += row;
    }
  }
  void barrier(Device&) override {}
  std::unique_ptr<Communicator> split(const Ranks& ranks) override {
    DGC_CHECK(ranks.first == 0 && ranks.size == 1, "a single rank has no others");
    return make_single_communicator();
  }
  void abort(const std::string&) noexcept override {}  // nobody else is there
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() { return std::make_unique<SingleCommunicator>(); }

}  // namespace dgc
