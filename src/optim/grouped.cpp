#include "optim/grouped.h"

#include <algorithm>

#include "optim/between_groups.h"
#include "optim/ordered_reduce.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

class Grouped final : public Optimizer {
 public:
  Grouped(const OptimizerContext& members, int workers_per_group, const MakeOptimizer& make)
      : members_(members), local_members_(std::min(workers_per_group, members.local_workers)) {
    DGC_CHECK(members.local_workers % local_members_ == 0 && workers_per_group % local_members_ == 0,
              "groups lie within ranks, or ranks within groups");
    const int ranks = workers_per_group / local_members_;  // ranks of a group
    Communicator& all = members.communicator;
    DGC_CHECK(all.size() % ranks == 0, "groups are of one size");
    if (ranks > 1) {
      inside_ = all.split({all.rank() / ranks * ranks, ranks});
      between_.emplace(all, ranks);
    } else {
      inside_ = make_single_communicator();
    }
    const int groups = members.local_workers / local_members_;
    for (int i = 0; i < groups; ++i) {
      sums_.emplace_back(members.backend, *inside_, local_members_, members.layout.extent(), MemoryUse::gradients);
    }
    optimizer_ = make({members.backend, between_ ? *between_ : all, members.layout, groups});
  }

  uint64_t prepare(double sparsity) override { return optimizer_->prepare(sparsity); }

  std::span<float* const> combine(std::span<float* const> gradients) override {
    const Range range(members_.backend, "group");
    combined_.clear();
    for (size_t i = 0; i < sums_.size(); ++i) {
      const auto count = static_cast<size_t>(local_members_);
      combined_.push_back(sums_[i].run(gradients.subspan(i * count, count)));
    }
    return combined_;
  }

  void step(const StepArgs& args) override { optimizer_->step(args); }
  void flush(const StepArgs& args) override { optimizer_->flush(args); }
  void prepare_flush() override { optimizer_->prepare_flush(); }

  StepBytes bytes() const override {
    StepBytes bytes = optimizer_->bytes();
    bytes.in_group = members_.layout.parameters() * int64_t{sizeof(float)};
    return bytes;
  }

  // The state of a group counts as that of the group's first local worker.
  std::vector<NamedState> state() const override {
    std::vector<NamedState> all = optimizer_->state();
    for (NamedState& state : all) {
      if (state.worker >= 0) state.worker *= local_members_;
    }
    return all;
  }

 private:
  OptimizerContext members_;
  int local_members_;                     // the workers of a group on this rank
  std::unique_ptr<Communicator> inside_;  // the ranks of this rank's group
  std::optional<BetweenGroups> between_;  // set if a group has several ranks
  std::vector<OrderedReduce> sums_;       // one for each group that has workers on this rank
  std::vector<float*> combined_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace

std::unique_ptr<Optimizer> make_grouped(const OptimizerContext& context, int workers_per_group,
                                        const MakeOptimizer& make) {
  return std::make_unique<Grouped>(context, workers_per_group, make);
}

}  // namespace dgc
