#pragma once

#include <optional>

#include "optim/optimizer.h"

namespace dgc {

// Clipping, momentum and the change of the weights, for a gradient that is complete: what dense SGD does once gradients
// have been added up.
class MomentumStep {
 public:
  MomentumStep(Backend&, const ParamLayout&, const SgdOptions&);

  // The gradient that counts is `gradient` / divisor / the loss scale of `scaled`; its norm is clipped to
  // SgdOptions::clip_norm. All pointers are to device memory.
  struct Args {
    float* gradient = nullptr;       // arena
    const double* square = nullptr;  // its squared norm; null: not known
    double divisor = 1;
    const StepControl* scaled = nullptr;
    const StepControl* control = nullptr;  // lr, skip
    float* weights = nullptr;              // arena
  };
  void run(const Args&);  // queued

  const Arena* momentum() const { return momentum_ ? &*momentum_ : nullptr; }  // null if SgdOptions::momentum is 0

 private:
  // Lies in device memory.
  struct Clip {
    double square = 0;  // squared norm of Args::gradient, where that is not known
    float scale = 0;
  };
  Clip* clip() const { return static_cast<Clip*>(clip_.data()); }

  Backend& backend_;
  SgdOptions options_;
  int64_t extent_;  // of an arena
  std::optional<Arena> momentum_;
  Buffer clip_;  // one Clip
};

}  // namespace dgc
