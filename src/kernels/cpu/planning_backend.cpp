#include "kernels/cpu/cpu_backend.h"
#include "tensor/counting_device.h"

namespace dgc {
namespace {

class PlanningBackend final : public CpuBackend {
 public:
  PlanningBackend(std::unique_ptr<Backend> of, std::shared_ptr<CountingDevice> counting)
      : CpuBackend(1, std::move(counting)), of_(std::move(of)) {}
  std::string name() const override { return of_->name(); }
  bool supports(DType activations) const override { return of_->supports(activations); }
  size_t batch_norm_saved_bytes(const BatchNormArgs& args) override { return of_->batch_norm_saved_bytes(args); }
  size_t pool_saved_bytes(const PoolArgs& args) override { return of_->pool_saved_bytes(args); }
  size_t rnn_saved_bytes(const RnnArgs& args, DType activations) override {
    return of_->rnn_saved_bytes(args, activations);
  }

 private:
  std::unique_ptr<Backend> of_;
};

}  // namespace

std::unique_ptr<Backend> make_planning_backend(std::unique_ptr<Backend> of, std::shared_ptr<CountingDevice> counting) {
  return std::make_unique<PlanningBackend>(std::move(of), std::move(counting));
}

}  // namespace dgc
