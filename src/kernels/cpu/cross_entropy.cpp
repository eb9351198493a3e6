#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

// Maxima and sums run in a fixed number of lanes, so that their bits are the same at any width of vectors.
constexpr int64_t kClassLanes = 16;
using ClassFloats = float __attribute__((vector_size(kClassLanes * sizeof(float))));
using Ints = int32_t __attribute__((vector_size(kClassLanes * sizeof(int32_t))));
using HalfFloats = float __attribute__((vector_size(kClassLanes / 2 * sizeof(float))));
using HalfDoubles = double __attribute__((vector_size(kClassLanes / 2 * sizeof(double))));

struct RowResult {
  double loss = 0;
  int64_t before = 0;  // classes that rank before the label
};

struct Rank {
  float top = -INFINITY;
  int64_t below = 0;
};

// The largest element of x, and how many elements are less than `own`; ties and NaN are not.
DGC_MULTIVERSION Rank rank(const float* x, int64_t n, float own) {
  ClassFloats tops = ClassFloats{} - INFINITY;
  Ints below{};
  int64_t c = 0;
  for (; c + kClassLanes <= n; c += kClassLanes) {
    ClassFloats next;
    std::memcpy(&next, x + c, sizeof next);
    tops = next > tops ? next : tops;
    below -= next < own;  // true is -1
  }
  Rank result;
  for (int64_t j = 0; j < kClassLanes; ++j) {
    result.top = std::max(result.top, tops[j]);
    result.below += below[j];
  }
  for (; c < n; ++c) {
    result.top = std::max(result.top, x[c]);
    result.below += x[c] < own;
  }
  return result;
}

DGC_MULTIVERSION int64_t count_equal(const float* x, int64_t n, float own) {
  int64_t found = 0;
  for (int64_t c = 0; c < n; ++c) found += x[c] == own;
  return found;
}

// Returns the sum of exp(x - top).
DGC_MULTIVERSION double sum_exp(const float* x, int64_t n, float top) {
  constexpr int64_t kBlock = 512;
  float block[kBlock];
  HalfDoubles low{}, high{};
  double rest = 0;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t size = std::min(kBlock, n - at);
    for (int64_t c = 0; c < size; ++c) block[c] = exp_of_negative(x[at + c] - top);
    int64_t c = 0;
    for (; c + kClassLanes <= size; c += kClassLanes) {
      HalfFloats a, b;
      std::memcpy(&a, block + c, sizeof a);
      std::memcpy(&b, block + c + kClassLanes / 2, sizeof b);
      low += __builtin_convertvector(a, HalfDoubles);
      high += __builtin_convertvector(b, HalfDoubles);
    }
    for (; c < size; ++c) rest += block[c];
  }
  const HalfDoubles both = low + high;
  for (int64_t j = 0; j < kClassLanes / 2; ++j) rest += both[j];
  return rest;
}

DGC_MULTIVERSION void scaled_exp(const float* x, int64_t n, float top, float scale, float* y) {
  for (int64_t c = 0; c < n; ++c) y[c] = exp_of_negative(x[c] - top) * scale;
}

DGC_MULTIVERSION void subtract_evenly(float* y, int64_t n, float value) {
  for (int64_t c = 0; c < n; ++c) y[c] -= value;
}

double sum_of_logits(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += x[c];
  return sum;
}

// What every class but the label gets of the target, and the label besides.
struct SmoothTarget {
  float even = 0, label = 1;
};

// loss = log(sum exp(x)) - sum target x. The largest x is subtracted from every exponent, so that none overflows.
RowResult row(const float* x, int64_t classes, int32_t label, const SmoothTarget& target, float gradient_scale,
              float* dx) {
  const float own = x[label];
  const Rank ranks = rank(x, classes, own);
  const int64_t ties_behind = count_equal(x + label + 1, classes - label - 1, own);
  const double sum = sum_exp(x, classes, ranks.top);
  double wanted = own;
  if (target.even > 0) {  // before dx is written, which may be x
    wanted = static_cast<double>(target.label) * own + static_cast<double>(target.even) * sum_of_logits(x, classes);
  }
  if (dx != nullptr) {
    scaled_exp(x, classes, ranks.top, static_cast<float>(gradient_scale / sum), dx);
    dx[label] -= gradient_scale * target.label;
    if (target.even > 0) subtract_evenly(dx, classes, gradient_scale * target.even);
  }
  return {.loss = std::log(sum) - (wanted - ranks.top), .before = classes - ranks.below - ties_behind - 1};
}

}  // namespace

void CpuBackend::softmax_cross_entropy(const CrossEntropyArgs& args, ConstView logits, ConstView labels, View dlogits,
                                       double* stats) {
  const float* const x = logits.f32();
  const int32_t* const label = labels.i32();
  float* const dx = dlogits ? dlogits.f32() : nullptr;
  const float scale = args.control == nullptr ? args.gradient_scale : args.gradient_scale * args.control->loss_scale;
  const SmoothTarget target{args.smoothing / static_cast<float>(args.classes), 1 - args.smoothing};
  for (int64_t r = 0; r < args.rows; ++r) {
    DGC_CHECK(label[r] >= 0 && label[r] < args.classes, fmt::format("label {} of {} classes", label[r], args.classes));
  }
  auto* const results = reinterpret_cast<RowResult*>(scratch(static_cast<size_t>(args.rows) * sizeof(RowResult)));
  for_chunks(args.rows, 8, [&](int64_t first, int64_t rows) {
    for (int64_t r = first; r < first + rows; ++r) {
      const int64_t at = r * args.classes;
      results[r] = row(x + at, args.classes, label[r], target, scale, dx == nullptr ? nullptr : dx + at);
    }
  });

  double loss = args.before == nullptr ? 0 : args.before[0];
  int64_t first = 0, top5 = 0;
  for (int64_t r = 0; r < args.rows; ++r) {
    loss += results[r].loss;
    first += results[r].before == 0;
    top5 += results[r].before < 5;
  }
  stats[0] = loss;
  stats[1] = static_cast<double>(first) + (args.before == nullptr ? 0 : args.before[1]);
  stats[2] = static_cast<double>(top5) + (args.before == nullptr ? 0 : args.before[2]);
}

}  // namespace dgc
