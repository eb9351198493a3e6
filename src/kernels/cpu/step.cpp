#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"

namespace dgc {

void CpuBackend::begin_step(const StepInput& input, StepControl* control, std::span<WorkerShare> local) {
  StepControl& c = *control;
  if (c.scale_every > 0 && c.skip != 0) {
    c.loss_scale = std::max(1.f, c.loss_scale / 2);
    c.good_steps = 1;
  } else if (c.scale_every > 0 && ++c.good_steps > c.scale_every) {
    if (c.loss_scale < kMostLossScale) c.loss_scale *= 2;
    c.good_steps = 1;
  }
  c.step = input.step;
  c.lr = input.lr;
  c.skip = 0;
  c.mean_square = 0;
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
  const double divisor = args.divisor * static_cast<double>(args.control->loss_scale);
  for (int64_t i = 0; i < args.count; ++i) {
    const double norm = std::sqrt(args.squares[i * args.stride]) / divisor;
    args.scales[i] = static_cast<float>(std::min(1.0, args.limit / (norm + 1e-6)) / divisor);
  }
}

void CpuBackend::copy_unless_skipped(const StepControl* control, ConstView from, View to) {
  if (control->skip == 0) device_->copy(to.data, from.data, to.bytes());
}

void CpuBackend::copy_if_skipped(const StepControl* control, ConstView from, View to) {
  if (control->skip != 0) device_->copy(to.data, from.data, to.bytes());
}

void CpuBackend::add_loss(const LossStats* more, LossStats* sum) { sum->add(*more); }

}  // namespace dgc
