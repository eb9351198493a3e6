#include "kernels/cuda/clock.cuh"
#include "kernels/cuda/step.cuh"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

void EmulatedBackend::begin_step(const StepInput& input, StepControl* control, std::span<WorkerShare> local) {
  cuda::begin_step(queue_, input, control, local);
}
void EmulatedBackend::judge_step(std::span<const WorkerShare> all, StepControl* control) {
  cuda::judge_step(queue_, all, control);
}
void EmulatedBackend::clip_scales(const ClipArgs& args) { cuda::clip_scales(queue_, args); }
void EmulatedBackend::copy_unless_skipped(const StepControl* control, ConstView from, View to) {
  cuda::copy_by_verdict<false>(queue_, control, from, to);
}
void EmulatedBackend::copy_if_skipped(const StepControl* control, ConstView from, View to) {
  cuda::copy_by_verdict<true>(queue_, control, from, to);
}
void EmulatedBackend::read_clock(uint64_t* nanoseconds) { cuda::read_clock(queue_, nanoseconds); }
void EmulatedBackend::add_overlap_time(const OverlapTimeArgs& args) { cuda::add_overlap_time(queue_, args); }

}  // namespace dgc
