// The kernels between our parameters and the libraries of a GPU, emulated.
#include "kernels/cuda/weights.cuh"

#include <catch.hpp>

#include "kernels/cuda/im2col.cuh"
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
  cuda::load_filters(e.queue, type, {{{.shape = shape, .from = w.view().data, .to = filter.view().data}}});
  CHECK(filter.host() == theirs);
  cuda::add_filters(e.queue, type, {{{.shape = shape, .from = filter.view().data, .to = dw.view().data}}});
  CHECK(dw.host() == both);
}

TEST_CASE("many filters travel at once, the largest in several blocks", "[kernels]") {
  Emulated e(GENERATE(from_range(chosen(emulated_backends()))));
  std::vector<cuda::FilterShape> shapes = {{1, 1, 1}, {3, 1, 2500}, {70, 5, 9}, {2, 2048, 1}, {1, 300, 49}};
  for (uint32_t i = 0; i < 2 * kMostFilters - 3; ++i) shapes.push_back({1 + i % 3, 2 + i % 5, 1 + i % 4});
  std::vector<OnDevice> ours, theirs, sums;
  std::vector<cuda::FilterMove> loads, adds;
  unsigned seed = 1;
  for (const cuda::FilterShape& shape : shapes) {
    const std::vector<float> values = random_floats(shape.numel(), seed++);
    ours.emplace_back(e.backend, values);
    theirs.emplace_back(e.backend, zeros(shape.numel()));
    sums.emplace_back(e.backend, values);
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    loads.push_back({.shape = shapes[i], .from = ours[i].view().data, .to = theirs[i].view().data});
    adds.push_back({.shape = shapes[i], .from = theirs[i].view().data, .to = sums[i].view().data});
  }
  cuda::load_filters(e.queue, DType::f32, loads);
  cuda::add_filters(e.queue, DType::f32, adds);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const cuda::FilterShape& s = shapes[i];
    CAPTURE(s.out, s.in, s.taps);
    const std::vector<float> from = ours[i].host(), to = theirs[i].host(), sum = sums[i].host();
    size_t wrong = 0;
    for (uint32_t out = 0; out < s.out; ++out) {
      for (uint32_t in = 0; in < s.in; ++in) {
        for (uint32_t tap = 0; tap < s.taps; ++tap) {
          const float value = from[(out * s.in + in) * s.taps + tap];
          if (to[(out * s.taps + tap) * s.in + in] != value) ++wrong;
          if (sum[(out * s.in + in) * s.taps + tap] != 2 * value) ++wrong;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a filter is turned around, group by group, for the gradient of a convolution's data", "[kernels]") {
  Emulated e(GENERATE(from_range(chosen(emulated_backends()))));
  const auto out = GENERATE(1u, 5u), in = GENERATE(1u, 3u), taps = GENERATE(1u, 35u), groups = GENERATE(1u, 3u);
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  CAPTURE(e.backend.name(), out, in, taps, groups, type);
  const cuda::FilterShape shape{groups * out, in, taps};
  std::vector<float> ours(shape.numel()), turned(ours.size() + 1, 7.f);
  for (size_t g = 0; g < groups; ++g) {
    for (size_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < in; ++i) {
        for (size_t t = 0; t < taps; ++t) {
          const auto value = static_cast<float>((g * 61 + o * 37 + i * 5 + t) % 251) - 120;
          ours[((g * out + o) * in + i) * taps + t] = value;
          turned[((g * in + i) * taps + (taps - 1 - t)) * out + o] = value;
        }
      }
    }
  }
  const OnDevice w(e.backend, ours), filter(e.backend, std::vector<float>(turned.size(), 7.f), type);
  cuda::load_turned_filter(e.queue, shape, groups, w, type, filter.view().data);
  CHECK(filter.host() == turned);
}

TEST_CASE("windows over images become the rows of a matrix", "[kernels]") {
  Emulated e(GENERATE(from_range(chosen(emulated_backends()))));
  const int groups = GENERATE(1, 3), channels = GENERATE(1, 4, 8);
  const int step = GENERATE(1, 2), spread = GENERATE(1, 3), pad = GENERATE(-1, 0, 2);
  const auto type = GENERATE(DType::f32, DType::bf16);
  CAPTURE(e.backend.name(), groups, channels, step, spread, pad, type);
  const cuda::Windows windows{
      .h = {4, 5, 3, step, pad, spread}, .w = {5, 4, 2, 1, 1, 2}, .groups = groups, .channels = channels};
  const int64_t images = 2, first = 3, count = images * windows.per_image() - 4;  // neither the first nor the last
  const OnDevice image(e.backend, random_floats(images * 4 * 5 * groups * channels, 1), type);
  const std::vector<float> x = image.host();
  std::vector<float> expected;
  for (int64_t window = first; window < first + count; ++window) {
    const int64_t n = window / 20, oh = window / 4 % 5, ow = window % 4;
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t kh = 0; kh < 3; ++kh) {
        for (int64_t kw = 0; kw < 2; ++kw) {
          // Of the image with its pixels spread out.
          const int64_t h = oh * step + kh - pad, w = ow + kw - 1;
          const bool meets = h >= 0 && h < 4 * spread && w >= 0 && w < 5 * 2 && h % spread == 0 && w % 2 == 0;
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t at = (((n * 4 + h / spread) * 5 + w / 2) * groups + g) * channels + c;
            expected.push_back(meets ? x[static_cast<size_t>(at)] : 0);
          }
        }
      }
    }
  }
  const auto numel = expected.size();
  expected.push_back(7);
  const OnDevice columns(e.backend, std::vector<float>(numel + 1, 7.f), type);
  cuda::im2col(e.queue, windows, first, count, image, columns.view().data);
  CHECK(columns.host() == expected);
}

TEST_CASE("sums of columns that are more than the counters made at first", "[kernels]") {
  EmulatedBackend backend;
  cuda::Queue queue(backend);
  const int64_t rows = 2, channels = 32 * cuda::kFewestTickets + 5;
  const OnDevice y(backend, random_floats(rows * channels, 1)), db(backend, std::vector<float>(channels, 1.f));
  cuda::add_column_sums(queue, {y.view().data, {rows, channels}, DType::f32}, db);
  const auto before = y.host();
  std::vector<double> sums(channels, 1.);
  for (size_t i = 0; i < before.size(); ++i) sums[i % sums.size()] += before[i];
  CHECK(worst_error(db.host(), sums) < 1e-6);
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
