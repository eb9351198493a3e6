#include "optim/step_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "dist/wire.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// What differs between programs or configs is the user's to mend. Everything else was damaged on its way, and a run
// that is started again may get through.
[[noreturn]] void throw_fault(const StepControl& control) {
  const std::string text = describe(control.fault, control.step);
  switch (control.fault.kind) {
    case WireFaultKind::version:
    case WireFaultKind::format:
    case WireFaultKind::layout:
      throw UserError(text);
    default:
      throw PeerFailed(text);
  }
}

}  // namespace

StepRecord::StepRecord(Backend& backend, Communicator& communicator, int local_workers)
    : backend_(backend),
      communicator_(communicator),
      local_count_(static_cast<size_t>(local_workers)),
      all_count_(local_count_ * static_cast<size_t>(communicator.size())),
      memory_(backend.device(), sizeof(StepControl) + all_count_ * sizeof(WorkerShare)),
      local_(backend.device(), local_count_ * sizeof(WorkerShare)) {
  restore_control({});
  for (size_t i = 0; i < kQueued; ++i) reports_.push_back(backend.device()->make_download(memory_.bytes()));
}

void StepRecord::begin(const StepInput& input) { backend_.begin_step(input, control(), {local(0), local_count_}); }

void StepRecord::measure(std::span<float* const> gradients, int64_t n) {
  DGC_CHECK(!gradients.empty() && local_count_ % gradients.size() == 0, "a gradient for every local worker");
  const size_t sharing = local_count_ / gradients.size();
  for (size_t i = 0; i < local_count_; ++i) {
    double* const square = &local(static_cast<int>(i))->square;
    if (i % sharing == 0) {
      backend_.sum_squares({gradients[i / sharing], {n}}, square);
    } else {
      backend_.device()->copy(square, &local(static_cast<int>(i - i % sharing))->square, sizeof(double));
    }
  }
}

void StepRecord::judge() {
  communicator_.all_gather(*backend_.device(), local_.data(), all(), local_.bytes());
  backend_.judge_step({all(), all_count_}, control());
}

void StepRecord::judge(std::span<const WorkerShare> present) {
  DGC_CHECK(present.size() <= all_count_, "more workers than there are");
  std::vector<WorkerShare> shares(all_count_);  // those of absent workers add nothing to the report
  std::ranges::copy(present, shares.begin());
  backend_.device()->copy_in(all(), shares.data(), all_count_ * sizeof(WorkerShare));
  backend_.judge_step({all(), present.size()}, control());
}

std::vector<WorkerShare> StepRecord::read_local() const {
  std::vector<WorkerShare> shares(local_count_);
  backend_.device()->copy_out(shares.data(), local_.data(), local_.bytes());
  return shares;
}

void StepRecord::finish() {
  DGC_CHECK(queued_ < kQueued, "take() the reports of earlier steps first");
  reports_[(next_ + queued_++) % kQueued]->start(memory_.data());
}

StepResult StepRecord::take() {
  DGC_CHECK(queued_ > 0, "no step to report");
  Download& report = *reports_[next_];
  // Waiting in the driver would not notice that another rank is gone.
  while (!report.ready()) {
    communicator_.check();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (communicator_.recordable()) communicator_.check();  // what a failure has ended is no result
  const auto* bytes = static_cast<const std::byte*>(report.wait());
  next_ = (next_ + 1) % kQueued;
  --queued_;

  StepControl control;
  std::memcpy(&control, bytes, sizeof(control));
  if (control.fault.kind != WireFaultKind::none) throw_fault(control);
  StepResult result{.step = control.step, .grad_norm = std::sqrt(control.mean_square), .skipped = control.skip != 0};
  for (size_t i = 0; i < all_count_; ++i) {
    WorkerShare share;
    std::memcpy(&share, bytes + sizeof(control) + i * sizeof(share), sizeof(share));
    result.loss.add(share.loss);
    result.stop = result.stop || share.stop != 0;
  }
  return result;
}

StepControl StepRecord::read_control() const {
  StepControl control;
  backend_.device()->copy_out(&control, memory_.data(), sizeof(control));
  return control;
}

void StepRecord::restore_control(const StepControl& control) {
  backend_.device()->copy_in(memory_.data(), &control, sizeof(control));
}

}  // namespace dgc
