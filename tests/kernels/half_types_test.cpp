// Kernels compute in float whatever their activations are. So with activations of 16 bits they must give what they give
// with floats of the same values, rounded to 16 bits. What they give with floats is tested elsewhere.
#include <catch.hpp>
#include <functional>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"
#include "tests/support/all_of.h"

using namespace dgc;

namespace {

// Where an op is to run, and with which type of activations.
struct Side {
  Backend& backend;
  DType type;
  DType held_by;      // a type of 16 bits, of which all inputs are numbers
  int64_t first = 0;  // the element with which activations begin: after one, they are not aligned for packs

  OnDevice input(int64_t n, unsigned seed) const {
    return {backend, OnDevice(backend, random_floats(n + first, seed), held_by).host(), type};
  }
  OnDevice output(int64_t n) const { return {backend, std::vector<float>(static_cast<size_t>(n + first), 9), type}; }
};

using Results = std::vector<std::vector<float>>;

void check_types(const std::function<Results(const Side&)>& op) {
  const auto backend = GENERATE(from_range(half_backends())).make();
  const DType half = GENERATE(DType::f16, DType::bf16);
  const int64_t first = GENERATE(0, 1);
  CAPTURE(backend->name(), half, first);
  const Results floats = op({*backend, DType::f32, half, first}), halves = op({*backend, half, half, first});
  REQUIRE(floats.size() == halves.size());
  for (size_t i = 0; i < floats.size(); ++i) {
    CAPTURE(i);
    CHECK(worst_error(halves[i], floats[i]) < rounding(half));
  }
}

}  // namespace

TEST_CASE("16 bits as floats: activations, sums and dropout", "[kernels]") {
  check_types([](const Side& s) {
    const int64_t n = 65;
    Results results;
    const OnDevice x = s.input(n, 1), dy = s.input(n, 2);
    for (const Activation activation : test::all_of<Activation>()) {
      const OnDevice y = s.output(n), dx = s.output(n);
      s.backend.activation_forward(activation, x.from(s.first), y.from(s.first));
      s.backend.activation_backward(activation, x.from(s.first), dy.from(s.first), dx.from(s.first));
      results.insert(results.end(), {y.host(), dx.host()});
    }
    const OnDevice dropped = s.output(n);
    s.backend.dropout_forward({.numel = n, .p = 0.5f, .seed = 1}, x.from(s.first), dropped.from(s.first));
    s.backend.add(x.from(s.first), dy.from(s.first));
    results.insert(results.end(), {dropped.host(), dy.host()});
    return results;
  });
}

TEST_CASE("16 bits as floats: conversions", "[kernels]") {
  check_types([](const Side& s) {
    const int64_t n = 65;
    Results results;
    const OnDevice x = s.input(n, 1);
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
      const OnDevice y(s.backend, zeros(n + s.first), to);
      s.backend.convert(x.from(s.first), y.from(s.first));
      results.push_back(y.host());
    }
    return results;
  });
}

TEST_CASE("16 bits as floats: embedding", "[kernels]") {
  check_types([](const Side& s) {
    const int64_t rows = 40, vocabulary = 9, width = 8;
    std::vector<int32_t> words;
    for (int32_t r = 0; r < rows; ++r) words.push_back(r * r % 7);
    const ValuesOnDevice<int32_t> tokens(s.backend, words);
    const ConstView token_view{tokens.data(), {rows}, DType::i32};
    const EmbeddingArgs args{.rows = rows, .vocabulary = vocabulary, .width = width};
    const OnDevice table(s.backend, random_floats(vocabulary * width, 1)), dtable(s.backend, zeros(vocabulary * width));
    const OnDevice y = s.output(rows * width), dy = s.input(rows * width, 2);
    s.backend.embedding_forward(args, token_view, table, y.from(s.first));
    s.backend.embedding_backward(args, token_view, dy.from(s.first), dtable);
    return Results{y.host(), dtable.host()};
  });
}

TEST_CASE("16 bits as floats: local response normalisation", "[kernels]") {
  const int64_t channels = GENERATE(10, 24);
  check_types([=](const Side& s) {
    const LrnArgs args{.batch = 2, .in_h = 3, .in_w = 2, .channels = channels, .size = 5, .alpha = 2.f};
    const int64_t n = 2 * 3 * 2 * channels;
    const OnDevice x = s.input(n, 1), dy = s.input(n, 2), y = s.output(n), dx = s.output(n);
    s.backend.lrn_forward(args, x.from(s.first), y.from(s.first));
    s.backend.lrn_backward(args, x.from(s.first), dy.from(s.first), dx.from(s.first));
    return Results{y.host(), dx.host()};
  });
}

TEST_CASE("16 bits as floats: global pooling", "[kernels]") {
  check_types([](const Side& s) {
    const int64_t channels = 16;
    const GlobalPoolArgs args{.batch = 3, .spatial = 21, .channels = channels};
    const OnDevice x = s.input(3 * 21 * channels, 1), y = s.output(3 * channels), dx = s.output(3 * 21 * channels);
    const OnDevice dy = s.input(3 * channels, 2);
    s.backend.global_pool_forward(args, x.from(s.first), y.from(s.first));
    s.backend.global_pool_backward(args, dy.from(s.first), dx.from(s.first));
    return Results{y.host(), dx.host()};
  });
}

TEST_CASE("16 bits as floats: shortcuts, flattened images and transposed tensors", "[kernels]") {
  check_types([](const Side& s) {
    const ShortcutArgs shortcut{.batch = 2, .in_h = 4, .in_w = 3, .in_c = 16, .out_c = 32, .stride = 2};
    const int64_t n = 2 * 4 * 3 * 16, out = 2 * shortcut.out_h() * shortcut.out_w() * 32;
    const OnDevice x = s.input(n, 1), y = s.output(out), dy = s.input(out, 2), dx = s.output(n);
    s.backend.shortcut_forward(shortcut, x.from(s.first), y.from(s.first));
    s.backend.shortcut_backward(shortcut, dy.from(s.first), dx.from(s.first));
    const OnDevice flat = s.output(n), back = s.output(n), swapped = s.output(n);
    s.backend.transpose({.outer = 2, .inner = 1, .rows = 12, .columns = 16}, x.from(s.first), flat.from(s.first));
    s.backend.transpose({.outer = 2, .inner = 1, .rows = 16, .columns = 12}, x.from(s.first), back.from(s.first));
    const TransposeArgs transpose{.outer = 2, .inner = 4, .rows = 3, .columns = 16};
    s.backend.transpose(transpose, x.from(s.first), swapped.from(s.first));
    return Results{y.host(), dx.host(), flat.host(), back.host(), swapped.host()};
  });
}

TEST_CASE("16 bits as floats: sequences", "[kernels]") {
  check_types([](const Side& s) {
    const int64_t steps = 7, streams = 3, width = 16, channels = 8, n = steps * streams * width;
    const ValuesOnDevice<int32_t> counts(s.backend, {7, 4, 1});
    const ConstView lengths{counts.data(), {streams}, DType::i32};
    const SequenceArgs args{.steps = steps, .streams = streams, .width = width};
    const OnDevice x = s.input(n, 1), dy = s.input(n, 2), reversed = s.output(n), y = s.output(n), dx = s.output(n);
    s.backend.sequence_reverse(args, lengths, x.from(s.first), reversed.from(s.first));
    const SequenceNormArgs norm{.sequences = args, .channels = channels};
    const OnDevice scale(s.backend, random_floats(channels, 3)), shift(s.backend, random_floats(channels, 4)),
        mean(s.backend, zeros(channels)), var(s.backend, zeros(channels)), saved(s.backend, zeros(3 * channels)),
        dscale(s.backend, zeros(channels)), dshift(s.backend, zeros(channels));
    s.backend.sequence_norm_forward(norm, lengths, x.from(s.first), scale, shift, mean, var, y.from(s.first), saved);
    s.backend.sequence_norm_backward(norm, lengths, x.from(s.first), scale, saved, dy.from(s.first), dx.from(s.first),
                                     dscale, dshift);
    return Results{reversed.host(), y.host(), dx.host(), mean.host(), var.host(), dscale.host(), dshift.host()};
  });
}

TEST_CASE("16 bits as floats: lookahead", "[kernels]") {
  check_types([](const Side& s) {
    const LookaheadArgs args{.steps = 7, .streams = 3, .channels = 16, .context = 3};
    const int64_t n = 7 * 3 * 16;
    const OnDevice x = s.input(n, 1), dy = s.input(n, 2), y = s.output(n), dx = s.output(n);
    const OnDevice w(s.backend, random_floats(16 * 3, 3)), dw(s.backend, zeros(16 * 3));
    s.backend.lookahead_forward(args, x.from(s.first), w, y.from(s.first));
    s.backend.lookahead_backward(args, x.from(s.first), w, dy.from(s.first), dx.from(s.first), dw);
    return Results{y.host(), dx.host(), dw.host()};
  });
}

TEST_CASE("16 bits as floats: copies that depend on the step", "[kernels]") {
  check_types([](const Side& s) {
    Results results;
    const OnDevice x = s.input(64, 1);
    for (const int32_t skip : {0, 1}) {
      const ValuesOnDevice<StepControl> control(s.backend, {StepControl{.skip = skip}});
      const OnDevice one = s.output(64), other = s.output(64);
      s.backend.copy_unless_skipped(control.data(), x.from(s.first), one.from(s.first));
      s.backend.copy_if_skipped(control.data(), x.from(s.first), other.from(s.first));
      results.insert(results.end(), {one.host(), other.host()});
    }
    return results;
  });
}
