// Which steps of padded sequences (SequenceArgs) are valid, and where they lie in memory.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/model.h"

namespace dgc::cuda {

__device__ inline int64_t valid_steps(const SequenceArgs& a, int length) {
  const int64_t frames = length > 0 ? length : 0, steps = (frames + a.frames_per_step - 1) / a.frames_per_step;
  return steps < a.steps ? steps : a.steps;
}

// A step of a stream. frame_at() gives the place of the step in memory, counted in steps; frame_place() is the inverse.
struct FramePlace {
  int64_t stream, step;
};
__device__ inline FramePlace frame_place(const SequenceArgs& a, int64_t frame) {
  if (a.order == SequenceOrder::steps_first) return {frame % a.streams, frame / a.streams};
  return {frame / a.steps, frame % a.steps};
}
__device__ inline int64_t frame_at(const SequenceArgs& a, const FramePlace& at) {
  return a.order == SequenceOrder::steps_first ? at.step * a.streams + at.stream : at.stream * a.steps + at.step;
}
__device__ inline bool is_valid(const SequenceArgs& a, const int32_t* lengths, int64_t frame) {
  const FramePlace at = frame_place(a, frame);
  return at.step < valid_steps(a, lengths[at.stream]);
}

}  // namespace dgc::cuda
