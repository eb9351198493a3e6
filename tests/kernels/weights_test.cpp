// The kernels between our parameters and the libraries of a GPU, emulated.
#include "kernels/cuda/weights.cuh"

#include <catch.hpp>

#include "kernels/cuda/queue.h"
#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

struct Emulated {
  explicit Emulated(const BackendFactory& factory) : made(factory.make()) {}
  std::unique_ptr<Backend> made;
  EmulatedBackend& backend = dynamic_cast<EmulatedBackend&>(*made);
  cuda::Queue queue{backend};
};

}  // namespace

TEST_CASE("filters travel from [out, in, taps] to [out, taps, in] and back", "[kernels]") {
  Emulated e(GENERATE(from_range(chosen(emulated_backends()))));
  const auto out = GENERATE(1u, 5u), in = GENERATE(1u, 3u, 32u), taps = GENERATE(1u, 9u, 35u);
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(e.backend.name(), out, in, taps, type);
  const cuda::FilterShape shape{out, in, taps};
  const auto at_ours = [&](size_t o, size_t i, size_t t) { return (o * in + i) * taps + t; };
  const auto at_theirs = [&](size_t o, size_t i, size_t t) { return (o * taps + t) * in + i; };
  // Numbers that every type holds, and old ones that must be added to or overwritten.
  std::vector<float> ours(shape.numel()), theirs(ours.size() + 1, 7.f), sum(ours.size() + 1, 7.f), both = sum;
  for (size_t o = 0; o < out; ++o) {
    for (size_t i = 0; i < in; ++i) {
      for (size_t t = 0; t < taps; ++t) {
        const auto value = static_cast<float>((o * 37 + i * 5 + t) % 251) - 120;
        ours[at_ours(o, i, t)] = value;
        theirs[at_theirs(o, i, t)] = value;
        both[at_ours(o, i, t)] = 7 + value;
      }
    }
  }
  const OnDevice w(e.backend, ours), filter(e.backend, std::vector<float>(theirs.size(), 7.f), type),
      dw(e.backend, sum);
  cuda::load_filter(e.queue, shape, w, type, filter.view().data);
  CHECK(filter.host() == theirs);
  cuda::add_filter(e.queue, shape, type, filter.view().data, dw);
  CHECK(dw.host() == both);
}

TEST_CASE("a bias is added to every row, and its gradient sums all rows", "[kernels]") {
  Emulated e(GENERATE(from_range(chosen(emulated_backends()))));
  const int64_t rows = GENERATE(1, 33, 700), channels = GENERATE(1, 3, 8, 40, 300), first = GENERATE(0, 1);
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(e.backend.name(), rows, channels, first, type);
  const OnDevice y(e.backend, random_floats(rows * channels + first, 1), type),
      b(e.backend, random_floats(channels, 2));
  const auto before = y.host(), bias = b.host();
  const View part{y.from(first).data, {rows, channels}, type};

  std::vector<double> expected = doubles(before), sums = doubles(bias);
  for (int64_t i = 0; i < rows * channels; ++i) {
    const auto at = static_cast<size_t>(first + i), c = static_cast<size_t>(i % channels);
    expected[at] += bias[c];
    sums[c] += before[at];
  }
  const OnDevice db(e.backend, bias);
  cuda::add_column_sums(e.queue, part, db);
  CHECK(worst_error(db.host(), sums) < 1e-5);
  cuda::add_bias(e.queue, b, part);
  CHECK(worst_error(y.host(), expected) < rounding(type));
  CHECK(b.host() == bias);
}
