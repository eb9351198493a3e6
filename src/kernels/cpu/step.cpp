#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"

namespace dgc {

void CpuBackend::begin_step(const StepInput& input, StepControl* control, std::span<WorkerShare> local) {
  begin_control(input, *control);
  std::ranges::fill(local, WorkerShare{.stop = input.stop ? 1.0 : 0.0});
}

void CpuBackend::judge_step(std::span<const WorkerShare> all, StepControl* control) {
  double sum = 0;
  for (const WorkerShare& share : all) sum += share.square;
  const double scale = control->loss_scale;
  control->skip = std::isfinite(sum) ? 0 : 1;
  control->mean_square = sum / static_cast<double>(all.size()) / (scale * scale);
}

void CpuBackend::clip_scales(const ClipArgs& args) {
  for (int64_t i = 0; i < args.count; ++i) args.scales[i] = args.scale_of(std::sqrt(args.squares[i * args.stride]));
}

void CpuBackend::copy_unless_skipped(const StepControl* control, ConstView from, View to) {
  if (control->skip == 0) device_->copy(to.data, from.data, to.bytes());
}

void CpuBackend::copy_if_skipped(const StepControl* control, ConstView from, View to) {
  if (control->skip != 0) device_->copy(to.data, from.data, to.bytes());
}

void CpuBackend::add_loss(const LossStats* more, LossStats* sum) { sum->add(*more); }

}  // namespace dgc
