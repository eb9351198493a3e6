#include "dist/communicator.h"

namespace dgc {
namespace {

class PlanningCommunicator final : public Communicator {
 public:
  explicit PlanningCommunicator(int ranks) : ranks_(ranks) {}
  std::string name() const override { return "planning"; }
  int rank() const override { return 0; }
  int size() const override { return ranks_; }
  bool between_processes() const override { return false; }
  bool recordable() const override { return true; }
  void all_gather(Device&, const void*, void*, size_t) override {}
  void gather_shards(Device&, std::span<const float* const>, float*, size_t) override {}
  void barrier(Device&) override {}
  std::unique_ptr<Communicator> split(const Ranks& ranks) override { return make_planning_communicator(ranks.size); }
  void abort(const std::string&) noexcept override {}

 private:
  int ranks_;
};

}  // namespace

std::unique_ptr<Communicator> make_planning_communicator(int ranks) {
  return std::make_unique<PlanningCommunicator>(ranks);
}

}  // namespace dgc
