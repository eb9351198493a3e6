// Softmax, cross entropy, its gradient and the statistics of a batch, in one launch: there is one block per row, and
// the last block to finish adds up the rows. Logits are read three times (the second and third time mostly from the
// cache) and dlogits, which may be the logits, are written once. The largest logit of a row is subtracted from every
// exponent, so that none overflows; sums run in double, in a fixed order. Ties and NaN count against the label. A label
// that is no class makes the loss and the row's gradient NaN, so that the step is skipped and reported, because the
// host cannot look at labels without waiting.
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

template <typename T>
struct CrossEntropy {
  static constexpr const char* kName = "softmax_cross_entropy";
  static constexpr int kBlock = 128;
  static constexpr int kNeverFirst = 1 << 30;
  struct Args {
    int64_t rows, classes;
    float gradient_scale, smoothing;
    const StepControl* control;  // may be null
    const T* logits;
    const int32_t* labels;
    T* dlogits;            // may be null
    double* losses;        // [rows]
    int* ranked;           // [rows]: classes that rank before the label
    const double* before;  // may be null, and may be stats
    double* stats;
    unsigned* ticket;
  };
  struct Shared {
    float tops[kBlock];
    int counts[2][kBlock];
    double sums[kBlock];
    double logits[kBlock];
    bool is_last;
  };

  // Joins what the kBlock threads have written to shared memory: add(i, j) adds element j to element i, and in the end
  // element 0 holds the result.
  template <typename Add>
  __device__ static void fold(const Add& add) {
    const int me = static_cast<int>(threadIdx.x);
    for (int half = kBlock / 2; half >= 1; half /= 2) {
      __syncthreads();
      if (me < half) add(me, me + half);
    }
    __syncthreads();
  }

  __device__ static void one_row(const Args& a, Shared& s) {
    const int me = static_cast<int>(threadIdx.x);
    const int64_t row = blockIdx.x;
    const T* const x = a.logits + row * a.classes;
    const int label = a.labels[row];
    const bool exists = label >= 0 && label < a.classes;
    const float own = exists ? to_float(x[label]) : NAN;

    float top = -INFINITY;
    int before = 0;
    double total = 0;
    for (int64_t c = me; c < a.classes; c += kBlock) {
      const float value = to_float(x[c]);
      top = value > top ? value : top;
      before += c < label ? !(value < own) : c > label && !(value <= own);
      total += static_cast<double>(value);
    }
    s.tops[me] = top;
    s.counts[0][me] = before;
    fold([&](int i, int j) {
      s.tops[i] = s.tops[j] > s.tops[i] ? s.tops[j] : s.tops[i];
      s.counts[0][i] += s.counts[0][j];
    });
    top = s.tops[0];

    double sum = 0;
    for (int64_t c = me; c < a.classes; c += kBlock) sum += static_cast<double>(expf(to_float(x[c]) - top));
    s.sums[me] = sum;
    s.logits[me] = total;
    fold([&](int i, int j) {
      s.sums[i] += s.sums[j];
      s.logits[i] += s.logits[j];
    });
    sum = s.sums[0];
    const float even_share = a.smoothing / static_cast<float>(a.classes), label_share = 1 - a.smoothing;
    if (me == 0) {
      // Without smoothing a logit that is not finite costs the label nothing.
      const double wanted = a.smoothing > 0 ? static_cast<double>(label_share) * static_cast<double>(own) +
                                                  static_cast<double>(even_share) * s.logits[0]
                                            : static_cast<double>(own);
      a.losses[row] = log(sum) - (wanted - static_cast<double>(top));
      a.ranked[row] = exists ? s.counts[0][0] : kNeverFirst;
    }

    if (a.dlogits == nullptr) return;
    const float one = a.gradient_scale * (a.control == nullptr ? 1.f : a.control->loss_scale);
    const float scale = exists ? static_cast<float>(static_cast<double>(one) / sum) : NAN;
    for (int64_t c = me; c < a.classes; c += kBlock) {
      const float share = expf(to_float(x[c]) - top) * scale;
      const float rest = c == label ? share - one * label_share : share;
      a.dlogits[row * a.classes + c] = from_float<T>(rest - one * even_share);
    }
  }

  __device__ static void run(const Args& a, Shared& s) {
    one_row(a, s);
    if (!last_block(a.ticket, gridDim.x, s.is_last)) return;
    const int me = static_cast<int>(threadIdx.x);
    double loss = 0;
    int first = 0, top5 = 0;
    for (int64_t row = me; row < a.rows; row += kBlock) {
      loss += a.losses[row];
      first += a.ranked[row] == 0;
      top5 += a.ranked[row] < 5;
    }
    s.sums[me] = loss;
    s.counts[0][me] = first;
    s.counts[1][me] = top5;
    fold([&](int i, int j) {
      s.sums[i] += s.sums[j];
      s.counts[0][i] += s.counts[0][j];
      s.counts[1][i] += s.counts[1][j];
    });
    if (me != 0) return;
    const double sums[3] = {s.sums[0], static_cast<double>(s.counts[0][0]), static_cast<double>(s.counts[1][0])};
    for (int i = 0; i < 3; ++i) a.stats[i] = a.before == nullptr ? sums[i] : a.before[i] + sums[i];
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::softmax_cross_entropy(const CrossEntropyArgs& args, ConstView logits, ConstView labels,
                                          View dlogits, double* stats) {
  Queue queue(*this);
  auto* const losses =
      reinterpret_cast<double*>(queue.scratch(static_cast<size_t>(args.rows) * (sizeof(double) + sizeof(int))));
  dispatch(logits.dtype, [&]<typename T>() {
    queue.run<CrossEntropy<T>>(args.rows, {.rows = args.rows,
                                           .classes = args.classes,
                                           .gradient_scale = args.gradient_scale,
                                           .smoothing = args.smoothing,
                                           .control = args.control,
                                           .logits = pointer<T>(logits),
                                           .labels = labels.i32(),
                                           .dlogits = pointer<T>(dlogits),
                                           .losses = losses,
                                           .ranked = reinterpret_cast<int*>(losses + args.rows),
                                           .before = args.before,
                                           .stats = stats,
                                           .ticket = queue.tickets(1)});
  });
}

}  // namespace dgc
