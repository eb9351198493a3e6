#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"

namespace dgc {
namespace {

struct RowResult {
  double loss = 0;
  int64_t before = 0;  // classes that rank before the label
};

// loss = log(sum exp(x)) - x[label], with the largest x taken out of every exponent so that none overflows.
RowResult row(const float* x, int64_t classes, int32_t label, float gradient_scale, float* dx) {
  const float top = *std::max_element(x, x + classes), own = x[label];
  RowResult result;
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const float e = std::exp(x[c] - top);
    if (dx != nullptr) dx[c] = e;
    sum += e;
    if (c != label && !(x[c] < own)) ++result.before;  // a tie and a NaN count against the label
  }
  result.loss = std::log(sum) - (static_cast<double>(own) - top);
  if (dx != nullptr) {
    const float scale = static_cast<float>(gradient_scale / sum);
    for (int64_t c = 0; c < classes; ++c) dx[c] *= scale;
    dx[label] -= gradient_scale;
  }
  return result;
}

}  // namespace

void CpuBackend::softmax_cross_entropy(const CrossEntropyArgs& args, ConstView logits, ConstView labels, View dlogits,
                                       double* stats) {
  const float* const x = logits.f32();
  const int32_t* const label = labels.i32();
  float* const dx = dlogits ? dlogits.f32() : nullptr;
  const float scale = args.control == nullptr ? args.gradient_scale : args.gradient_scale * args.control->loss_scale;
  for (int64_t r = 0; r < args.rows; ++r) {
    DGC_CHECK(label[r] >= 0 && label[r] < args.classes, fmt::format("label {} of {} classes", label[r], args.classes));
  }
  auto* const results = reinterpret_cast<RowResult*>(scratch(static_cast<size_t>(args.rows) * sizeof(RowResult)));
  for_chunks(args.rows, 8, [&](int64_t first, int64_t rows) {
    for (int64_t r = first; r < first + rows; ++r) {
      const int64_t at = r * args.classes;
      results[r] = row(x + at, args.classes, label[r], scale, dx == nullptr ? nullptr : dx + at);
    }
  });

  double loss = 0;
  int64_t first = 0, top5 = 0;
  for (int64_t r = 0; r < args.rows; ++r) {
    loss += results[r].loss;
    first += results[r].before == 0;
    top5 += results[r].before < 5;
  }
  stats[0] = loss;
  stats[1] = static_cast<double>(first);
  stats[2] = static_cast<double>(top5);
}

}  // namespace dgc
