#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tensor/counting_device.h"

namespace dgc {

// What one call of an op costs a GPU, as the op's arguments tell it.
struct OpCost {
  const char* op = "";
  std::string phase = {};    // the outermost Range around the call; "" outside of all
  int64_t bytes = 0;         // that the op reads from memory and writes to it, where no cache helps
  double flops = 0;          // of its products, where a fused multiply-add counts as two
  bool half = false;         // whether the products are of 16-bit numbers
  int64_t launches = 1;      // of our kernels; a call of a library counts as one
  int64_t serial_steps = 0;  // of a recurrent layer: each waits for the step before it
  int lane = 0;              // of make_lanes(), from 1; 0: what runs beside nothing else
};

// A backend that computes nothing. It says what ops of `of` need, and keeps a list of what was called. Its device only
// counts, so the pointers that it gets and gives point nowhere.
class CountingBackend final : public Backend {
 public:
  CountingBackend(std::unique_ptr<Backend> of, std::shared_ptr<CountingDevice> device);

  // The calls since the last take_calls(), in their order.
  std::vector<OpCost> take_calls();
  const std::set<PlannedConv>& convolutions() const { return convolutions_; }  // all that were called
  // Calls `body` as the work of this lane (OpCost::lane), which is outside of all ranges.
  void in_lane(int lane, const std::function<void()>& body);

  std::string name() const override { return of_->name(); }
  const std::shared_ptr<Device>& device() const override { return device_; }
  bool supports(DType) const override { return true; }  // of_ need not be what a run computes with
  int threads() const override { return of_->threads(); }
  std::string arithmetic() const override { return of_->arithmetic(); }
  std::unique_ptr<Lane> make_lane() override;  // does its tasks at once, on this backend
  std::vector<std::unique_ptr<Lane>> make_lanes(int count) override;
  void begin_range(const char* name) override;
  void end_range() override { --depth_; }
  void run_recorded(const RecordKey&, const std::function<void()>& body) override { body(); }
  void with_filters(std::span<const FilterUse>, DType activations, const std::function<void()>& body) override;
  void conv2d_add_backward_data(const Conv2dArgs&, ConstView dy, ConstView w, View spare, View dx) override;

#include "kernels/kernel_ops.inc"
#include "kernels/library_ops.inc"

 private:
  void count(OpCost cost);
  void count(const char* op, int64_t bytes, int64_t launches = 1);
  void count_backward_data(const PlannedConv&, ConstView dy, View dx);
  // A launch for some filters, or their gradients, which moves so many bytes for each.
  void count_filters(const char* op, std::span<const FilterUse>, DType activations,
                     int64_t (*bytes_of)(const FilterArgs&, DType));

  std::unique_ptr<Backend> of_;
  std::shared_ptr<Device> device_;
  std::vector<OpCost> calls_;
  std::set<PlannedConv> convolutions_;
  std::string phase_;
  int depth_ = 0, lane_ = 0;
  int passes_ = 0;               // of with_filters(), one within the other
  bool adds_gradients_ = false;  // whether the pass adds the filters' gradients at its end
};

}  // namespace dgc
