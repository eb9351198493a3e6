// Fully connected layers by sgemm. oneDNN's inner product primitive would copy all weights into a layout of its own and
// back in every step.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/product.h"

namespace dgc {

void CpuBackend::linear_forward(const LinearArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  float* const out = y.f32();
  if (b) {
    for (int64_t r = 0; r < args.batch; ++r) std::copy_n(b.f32(), args.out, out + r * args.out);
  }
  product(args.batch, args.out, args.in, {x.f32(), args.in}, {w.f32(), args.in, 'T'}, static_cast<bool>(b), out);
}

void CpuBackend::linear_backward(const LinearArgs& args, ConstView x, ConstView w, ConstView dy, View dx, View dw,
                                 View db) {
  const float* const g = dy.f32();
  if (dx) product(args.batch, args.in, args.out, {g, args.out}, {w.f32(), args.in}, false, dx.f32());
  product(args.out, args.in, args.batch, {g, args.out, 'T'}, {x.f32(), args.in}, true, dw.f32());
  if (db) add_column_sums({g, args.out}, args.batch, args.out, db.f32());
}

}  // namespace dgc
