#pragma once

#include <memory>
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
};

// A backend that computes nothing. It says what ops of `of` need, and keeps a list of what was called. Its device only
// counts, so the pointers that it gets and gives point nowhere.
class CountingBackend final : public Backend {
 public:
  CountingBackend(std::unique_ptr<Backend> of, std::shared_ptr<CountingDevice> device);

  // The calls since the last take_calls(), in their order.
  std::vector<OpCost> take_calls();
  // Calls `body` as if it were outside of all ranges, as the work of a lane is.
  void outside_ranges(const std::function<void()>& body);

  std::string name() const override { return of_->name(); }
  const std::shared_ptr<Device>& device() const override { return device_; }
  bool supports(DType) const override { return true; }  // of_ need not be what a run computes with
  std::unique_ptr<Lane> make_lane() override;           // does its tasks at once, on this backend
  void begin_range(const char* name) override;
  void end_range() override { --depth_; }
  void run_recorded(uint64_t, const std::function<void()>& body) override { body(); }

  void conv2d_forward(const Conv2dArgs&, ConstView x, ConstView w, ConstView b, View y) override;
  void conv2d_backward_data(const Conv2dArgs&, ConstView dy, ConstView w, View dx) override;
  void conv2d_backward_weights(const Conv2dArgs&, ConstView x, ConstView dy, View dw, View db) override;
  void linear_forward(const LinearArgs&, ConstView x, ConstView w, ConstView b, View y) override;
  void linear_backward(const LinearArgs&, ConstView x, ConstView w, ConstView dy, View dx, View dw, View db) override;
  size_t rnn_saved_bytes(const RnnArgs&, DType activations) override;
  void rnn_forward(const RnnArgs&, ConstView x, const RnnWeights&, const RnnState&, View y, View saved) override;
  void rnn_backward(const RnnArgs&, ConstView x, const RnnWeights&, ConstView y, View saved, ConstView dy, View dx,
                    const RnnGradients&) override;

#include "kernels/kernel_ops.inc"

 private:
  void count(OpCost cost);
  void count(const char* op, int64_t bytes, int64_t launches = 1);

  std::unique_ptr<Backend> of_;
  std::shared_ptr<Device> device_;
  std::vector<OpCost> calls_;
  std::string phase_;
  int depth_ = 0;
};

}  // namespace dgc
