#include "dist/whole_communicator.h"

#include "tensor/errors.h"

namespace dgc {
namespace {

class Part final : public Communicator {
 public:
  Part(WholeCommunicator& whole, const Ranks& ranks)
      : whole_(whole), ranks_(ranks), rank_(place_among(ranks, whole.rank())) {
    DGC_CHECK(ranks.first >= 0 && ranks.at(ranks.size - 1) < whole.size(), "a part has only ranks that there are");
  }

  std::string name() const override { return whole_.name(); }
  int rank() const override { return rank_; }
  int size() const override { return ranks_.size; }
  bool between_processes() const override { return whole_.between_processes(); }
  bool recordable() const override { return whole_.recordable(); }

  void all_gather(Device& device, const void* mine, void* all, size_t bytes) override {
    whole_.all_gather_among(ranks_, device, mine, all, bytes);
  }
  void gather_shards(Device& device, std::span<const float* const> local_workers, float* mine, size_t n) override {
    whole_.gather_shards_among(ranks_, device, local_workers, mine, n);
  }
  void barrier(Device& device) override { whole_.barrier_among(ranks_, device); }
  std::unique_ptr<Communicator> split(const Ranks& some) override {
    return whole_.split({ranks_.at(some.first), some.size, some.stride * ranks_.stride});
  }
  void check() override { whole_.check(); }
  void abort(const std::string& reason) noexcept override { whole_.abort(reason); }

 private:
  WholeCommunicator& whole_;
  Ranks ranks_;
  int rank_;
};

}  // namespace

std::unique_ptr<Communicator> WholeCommunicator::split(const Ranks& ranks) {
  return std::make_unique<Part>(*this, ranks);
}

int place_among(const Ranks& ranks, int rank) {
  for (int i = 0; i < ranks.size; ++i) {
    if (ranks.at(i) == rank) return i;
  }
  throw InternalError(fmt::format("rank {} takes part in a collective that is not its own", rank));
}

}  // namespace dgc
