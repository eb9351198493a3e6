#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/wrapped_device.h"

namespace dgc::test {

// What is queued while a step is recorded.
class Tape {
 public:
  void run(std::function<void()> op) {
    auto* const to = std::exchange(recording_, nullptr);  // what an op does inside is its own
    op();
    recording_ = to;
    if (to != nullptr) to->push_back(std::move(op));
  }
  void play(const RecordKey& key, const std::function<void()>& body) {
    const auto [known, is_new] = recordings_.try_emplace(key);
    if (is_new) {
      recording_ = &known->second;
      body();
      recording_ = nullptr;
    } else {
      for (const auto& op : known->second) op();
    }
  }

 private:
  std::map<RecordKey, std::vector<std::function<void()>>> recordings_;
  std::vector<std::function<void()>>* recording_ = nullptr;
};

class RecordingDevice final : public WrappedDevice {
 public:
  explicit RecordingDevice(std::shared_ptr<Tape> tape) : tape_(std::move(tape)) {}
  void copy(void* to, const void* from, size_t bytes) override {
    tape_->run([=, this] { WrappedDevice::copy(to, from, bytes); });
  }
  void zero(void* memory, size_t bytes) override {
    tape_->run([=, this] { WrappedDevice::zero(memory, bytes); });
  }

 private:
  std::shared_ptr<Tape> tape_;
};

// When a lane does its tasks: both are orders in which two queues of a GPU may do them.
enum class LaneOrder { at_once, when_waited_for };

// Records what a step queues, once for each key, and replays that from then on, as a GPU does: nothing of what the host
// does in between is done again. Of a rank on its own; ops of an optimizer alone, what belongs to layers is missing.
class RecordingBackend final : public CpuBackend {
 public:
  explicit RecordingBackend(LaneOrder order) : RecordingBackend(order, std::make_shared<Tape>()) {}
  std::unique_ptr<Lane> make_lane() override;
  void run_recorded(const RecordKey& key, const std::function<void()>& body) override { tape_->play(key, body); }

  void judge_step(std::span<const WorkerShare> all, StepControl* control) override {
    tape_->run([=, this] { CpuBackend::judge_step(all, control); });
  }
  void clip_scales(const ClipArgs& args) override {
    tape_->run([=, this] { CpuBackend::clip_scales(args); });
  }
  void copy_if_skipped(const StepControl* control, ConstView from, View to) override {
    tape_->run([=, this] { CpuBackend::copy_if_skipped(control, from, to); });
  }
  void sum_squares(ConstView x, double* out) override {
    tape_->run([=, this] { CpuBackend::sum_squares(x, out); });
  }
  void ordered_sum(std::span<const float* const> x, float* out, int64_t n) override {
    tape_->run(
        [this, out, n, x = std::vector<const float*>(x.begin(), x.end())] { CpuBackend::ordered_sum(x, out, n); });
  }
  void read_clock(uint64_t* nanoseconds) override {
    tape_->run([=, this] { CpuBackend::read_clock(nanoseconds); });
  }
  void add_overlap_time(const OverlapTimeArgs& args) override {
    tape_->run([=, this] { CpuBackend::add_overlap_time(args); });
  }
  void dgc_compress(const DgcCompressArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_compress(args); });
  }
  void dgc_encode(const DgcEncodeArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_encode(args); });
  }
  void dgc_apply(const DgcApplyArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_apply(args); });
  }
  void dgc_scatter(const DgcScatterArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_scatter(args); });
  }
  void dgc_step(const DgcStepArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_step(args); });
  }
  void dgc_pack(const DgcPackArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_pack(args); });
  }
  void dgc_pack_half(const DgcPackHalfArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_pack_half(args); });
  }
  void dgc_sum_half(const DgcSumHalfArgs& args) override {
    tape_->run([=, this] { CpuBackend::dgc_sum_half(args); });
  }

 private:
  class QueueLane;
  RecordingBackend(LaneOrder order, std::shared_ptr<Tape> tape)
      : CpuBackend(1, Fp32Math::exact, std::make_shared<RecordingDevice>(tape)),
        order_(order),
        tape_(std::move(tape)) {}

  LaneOrder order_;
  std::shared_ptr<Tape> tape_;
};

class RecordingBackend::QueueLane final : public Lane {
 public:
  QueueLane(LaneOrder order, const std::shared_ptr<Tape>& tape) : order_(order), backend_(order, tape) {}
  Backend& backend() const override { return backend_; }
  void post(std::function<void()> task) override {
    tasks_.push_back(std::move(task));
    if (order_ == LaneOrder::at_once) drain();
  }
  void drain() override {
    for (const auto& task : std::exchange(tasks_, {})) task();
  }

 private:
  LaneOrder order_;
  mutable RecordingBackend backend_;
  std::vector<std::function<void()>> tasks_;
};

inline std::unique_ptr<Lane> RecordingBackend::make_lane() { return std::make_unique<QueueLane>(order_, tape_); }

}  // namespace dgc::test
