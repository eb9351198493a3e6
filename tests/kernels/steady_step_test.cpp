// Promises of the CPU backend that other backends keep in other ways: a steady step allocates nothing that grows with
// the data, and results do not depend on the number of threads where the loops are our own.
#include <catch.hpp>

#include "tests/kernels/on_device.h"
#include "tests/support/large_allocations.h"

using namespace dgc;

namespace {

// The ops of a network of images but for the linear layer, whose matrix product takes panels of bounded size inside
// oneDNN.
void step(Backend& backend, const std::vector<OnDevice>& t) {
  const int64_t batch = 4, side = 16, channels = 16, numel = batch * side * side * channels;
  const Conv2dArgs conv{batch, side, side, channels, channels, 3, 3, 1, 1, 1, 1, 1};
  const BatchNormArgs norm{.rows = batch * side * side, .channels = channels, .relu = true, .residual = true};
  const PoolArgs pool{PoolKind::max, batch, side, side, channels, 2, 2, 2, 2, 0, 0};
  backend.conv2d_forward(conv, t[0], t[4], t[5], t[1]);
  backend.batch_norm_forward(norm, t[1], t[0], t[5], t[5], t[6], t[6], t[2], t[7]);
  backend.batch_norm_backward(norm, t[1], t[2], t[5], t[7], t[3], t[1], t[6], t[6]);
  backend.conv2d_backward_data(conv, t[1], t[4], t[2]);
  backend.conv2d_backward_weights(conv, t[0], t[1], t[8], t[6]);
  backend.pool_forward(pool, t[0], t[1], t[9]);
  backend.pool_backward(pool, t[1], t[9], t[2]);
  backend.lrn_forward({batch, side, side, channels}, t[0], t[1]);
  backend.lrn_backward({batch, side, side, channels}, t[0], t[1], t[2]);
  backend.dropout_forward({.numel = numel, .p = 0.5f}, t[0], t[1]);
  backend.sum_squares(t[0], static_cast<double*>(t[7].view().data));
  const float* const terms[] = {t[0].view().f32(), t[1].view().f32()};
  backend.ordered_sum(terms, t[2].view().f32(), numel);
  StepControl control{.lr = 0.1f};
  const float scale = 1;
  backend.sgd_step({.numel = numel, .momentum = 0.9f, .scale = &scale, .control = &control}, t[0], t[1], t[2]);
}

std::vector<OnDevice> tensors(Backend& backend) {
  const int64_t numel = 4 * 16 * 16 * 16;
  std::vector<OnDevice> made;
  for (const unsigned seed : {0u, 1u, 2u, 3u}) made.emplace_back(backend, random_floats(numel, seed));
  made.emplace_back(backend, random_floats(16 * 16 * 9, 4));
  made.emplace_back(backend, random_floats(16, 5, 0.5f, 1));
  made.emplace_back(backend, zeros(16));
  made.emplace_back(backend, zeros(64));
  made.emplace_back(backend, zeros(16 * 16 * 9));
  made.emplace_back(backend, zeros(numel));
  return made;
}

}  // namespace

TEST_CASE("a steady step on the CPU allocates nothing that grows with the data", "[kernels]") {
  if (!kCountsAllocations) {
    WARN("skipped: allocations can only be counted with glibc and without a sanitizer");
    return;
  }
  const auto backend = make_cpu_backend(2);
  const auto data = tensors(*backend);
  step(*backend, data);  // prepares primitives and grows the scratch
  const size_t peak = backend->device()->peak_bytes();
  const int before = large_allocations;
  REQUIRE(before > 0);  // the counter counts
  step(*backend, data);
  step(*backend, data);
  CHECK(large_allocations == before);
  CHECK(backend->device()->peak_bytes() == peak);
}

TEST_CASE("the CPU's own loops give the same bits on one thread and on two", "[kernels]") {
  const int64_t rows = 3000, channels = 20, numel = rows * channels;  // 30 images of 10 x 10, or 50 streams of 60 steps
  const auto run = [&](int threads) {
    const auto backend = make_cpu_backend(threads);
    const OnDevice x(*backend, random_floats(numel, 1)), scale(*backend, random_floats(channels, 2));
    const OnDevice y(*backend, zeros(numel)), mean(*backend, zeros(channels)), var(*backend, zeros(channels));
    const OnDevice saved(*backend, zeros(numel)), dy(*backend, random_floats(numel, 3)), dx(*backend, zeros(numel));
    const OnDevice dscale(*backend, zeros(channels)), dshift(*backend, zeros(channels));
    std::pair<std::vector<std::vector<float>>, std::vector<double>> results;
    const auto keep = [&](std::initializer_list<const OnDevice*> tensors) {
      for (const OnDevice* tensor : tensors) results.first.push_back(tensor->host());
    };
    const BatchNormArgs norm{.rows = rows, .channels = channels, .relu = true};
    backend->batch_norm_forward(norm, x, {}, scale, scale, mean, var, y, saved);
    backend->batch_norm_backward(norm, x, y, scale, saved, dy, dx, dscale, dshift);
    keep({&y, &mean, &var, &dx, &dscale, &dshift});

    std::vector<int32_t> lengths, tokens, spelled;
    for (int32_t s = 0; s < 50; ++s) lengths.push_back(10 + s);
    for (int32_t r = 0; r < rows; ++r) tokens.push_back(r * 7 % 19);
    for (int32_t s = 0; s < 50; ++s) spelled.insert(spelled.end(), {3, 1 + s % 19, 2, 5});
    const ValuesOnDevice<int32_t> length(*backend, lengths), token(*backend, tokens), transcript(*backend, spelled);
    const ConstView of_streams(length.data(), {50}, DType::i32), of_rows(token.data(), {rows}, DType::i32);
    const SequenceNormArgs valid{.sequences = {.steps = 60, .streams = 50, .width = channels}, .channels = channels};
    backend->sequence_norm_forward(valid, of_streams, x, scale, scale, mean, var, y, saved);
    backend->sequence_norm_backward(valid, of_streams, x, scale, saved, dy, dx, dscale, dshift);
    keep({&y, &mean, &var, &dx, &dscale, &dshift});

    const OnDevice small(*backend, random_floats(5 * channels, 4)), dsmall(*backend, zeros(5 * channels));
    backend->lookahead_forward({.steps = 60, .streams = 50, .channels = channels, .context = 5}, x, small, y);
    backend->lookahead_backward({.steps = 60, .streams = 50, .channels = channels, .context = 5}, x, small, dy, dx,
                                dsmall);
    keep({&y, &dx, &dsmall});
    const OnDevice table(*backend, random_floats(19 * channels, 5)), dtable(*backend, zeros(19 * channels));
    backend->embedding_forward({.rows = rows, .vocabulary = 19, .width = channels}, of_rows, table, y);
    backend->embedding_backward({.rows = rows, .vocabulary = 19, .width = channels}, of_rows, dy, dtable);
    keep({&y, &dtable});

    for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
      const PoolArgs pool{kind, 30, 10, 10, channels, 3, 3, 2, 2, 1, 1};
      backend->pool_forward(pool, x, y, saved);
      backend->pool_backward(pool, dy, saved, dx);
      keep({&y, &dx});
    }
    backend->global_pool_forward({.batch = 30, .spatial = 100, .channels = channels}, x, y);
    backend->global_pool_backward({.batch = 30, .spatial = 100, .channels = channels}, dy, dx);
    keep({&y, &dx});
    backend->lrn_forward({30, 10, 10, channels}, x, y);
    backend->lrn_backward({30, 10, 10, channels}, x, dy, dx);
    keep({&y, &dx});

    double stats[3];
    backend->softmax_cross_entropy({.rows = rows, .classes = channels}, x, of_rows, dx, stats);
    results.second.insert(results.second.end(), std::begin(stats), std::end(stats));
    keep({&dx});
    backend->ctc_loss({.steps = 60, .streams = 50, .classes = channels, .most_labels = 3}, x, of_streams,
                      {transcript.data(), {50, 4}, DType::i32}, dx, stats);
    results.second.insert(results.second.end(), std::begin(stats), std::end(stats));
    keep({&dx});
    backend->sum_squares(x, &results.second.emplace_back());
    return results;
  };
  CHECK(run(1) == run(2));
}
