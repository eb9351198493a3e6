#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

// The arguments that batch_norm_forward and batch_norm_inference have in common.
struct BatchNormViews {
  ConstView x, residual, scale, shift;
  View y;
};

template <typename T, int V>
void batch_norm_apply(Queue queue, const BatchNormArgs& args, const ColumnTiles& tiles, const BatchNormViews& views,
                      const Normalisation& by) {
  queue.run<BatchNormApply<T, V>>(tiles.blocks(), {.tiles = tiles,
                                                   .relu = args.relu,
                                                   .eps = args.eps,
                                                   .x = pointer<T>(views.x),
                                                   .residual = args.residual ? pointer<T>(views.residual) : nullptr,
                                                   .scale = views.scale.f32(),
                                                   .shift = views.shift.f32(),
                                                   .by = by,
                                                   .y = pointer<T>(views.y)});
}

// Calls body<T, V>(tiles).
template <typename Body>
void batch_norm_dispatch(const Queue& queue, const BatchNormArgs& args, const BatchNormViews& views, const Body& body) {
  dispatch(views.y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      body.template operator()<T, V>(column_tiles(args.rows, args.channels, V, sizeof(T), column_blocks(queue)));
    };
    dispatch_packs<float>(args.channels, run, views.x.data, views.y.data,
                          args.residual ? views.residual.data : nullptr);
  });
}

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::batch_norm_forward(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                       ConstView shift, View running_mean, View running_var, View y, View saved) {
  Queue queue(*this);
  const BatchNormViews views{x, residual, scale, shift, y};
  float* const keep = pointer<float>(saved);
  batch_norm_dispatch(queue, args, views, [&]<typename T, int V>(const ColumnTiles& tiles) {
    auto* const scratch = reinterpret_cast<float*>(queue.scratch(tile_sums_floats(tiles) * sizeof(float)));
    queue.run<BatchNormSums<T, V>>(
        tiles.blocks(), {.tiles = tiles,
                         .x = pointer<T>(x),
                         .keep = {args.eps, args.momentum, shift.f32(), running_mean.f32(), running_var.f32(), keep},
                         .sums = tile_sums(tiles, scratch),
                         .tickets = queue.tickets(tiles.groups)});
    batch_norm_apply<T, V>(queue, args, tiles, views, {.mean = keep, .inverse = keep + args.channels, .var = nullptr});
  });
}

void KernelBackend::batch_norm_inference(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                         ConstView shift, ConstView mean, ConstView var, View y) {
  Queue queue(*this);
  const BatchNormViews views{x, residual, scale, shift, y};
  batch_norm_dispatch(queue, args, views, [&]<typename T, int V>(const ColumnTiles& tiles) {
    batch_norm_apply<T, V>(queue, args, tiles, views, {.mean = mean.f32(), .inverse = nullptr, .var = var.f32()});
  });
}

}  // namespace dgc
