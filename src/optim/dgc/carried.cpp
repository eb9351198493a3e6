#include "optim/dgc/carried.h"

namespace dgc {

Carried::Carried(const OptimizerContext& context, int64_t dense) : context_(context), dense_(dense) {
  const auto& device = context.backend.device();
  const int workers = context.communicator.size() * context.local_workers;
  rows_ = Buffer(device, static_cast<size_t>(workers) * dense_bytes(), MemoryUse::messages);
  sum_ = Buffer(device, dense_bytes(), MemoryUse::messages);
  for (int worker = 0; worker < workers; ++worker) row_pointers_.push_back(rows_.f32() + worker * dense);
}

const float* Carried::place(Bucket& bucket, std::span<const std::byte* const> from, float* zeros,
                            const StepControl* control) {
  bucket.place(from, zeros, control);
  if (dense_ == 0) return nullptr;

  Device& device = *context_.backend.device();
  const size_t message = bucket.layout().wire.message_bytes();
  for (size_t worker = 0; worker < from.size(); ++worker) {
    std::byte* const row = static_cast<std::byte*>(rows_.data()) + worker * dense_bytes();
    if (from[worker] == nullptr) {
      device.zero(row, dense_bytes());
    } else {
      device.copy_in(row, from[worker] + message, dense_bytes());
    }
  }
  context_.backend.ordered_sum(row_pointers_, sum_.f32(), dense_);
  return sum_.f32();
}

}  // namespace dgc
