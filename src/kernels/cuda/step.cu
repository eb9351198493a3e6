#include "kernels/cuda/queue.h"
#include "kernels/cuda/step.cuh"

namespace dgc {

using cuda::Queue;

void CudaBackend::begin_step(const StepInput& input, StepControl* control, std::span<WorkerShare> local) {
  Queue queue(*this);
  cuda::begin_step(queue, input, control, local);
}

void CudaBackend::judge_step(std::span<const WorkerShare> all, StepControl* control) {
  Queue queue(*this);
  cuda::judge_step(queue, all, control);
}

void CudaBackend::clip_scales(const ClipArgs& args) {
  Queue queue(*this);
  cuda::clip_scales(queue, args);
}

void CudaBackend::copy_unless_skipped(const StepControl* control, ConstView from, View to) {
  Queue queue(*this);
  cuda::copy_by_verdict<false>(queue, control, from, to);
}

void CudaBackend::copy_if_skipped(const StepControl* control, ConstView from, View to) {
  Queue queue(*this);
  cuda::copy_by_verdict<true>(queue, control, from, to);
}

}  // namespace dgc
