#include "layers/decoder.h"

#include <algorithm>

namespace dgc {
namespace {

// At most this many logits exist at a time (64 MiB of fp32). Not fewer, because every further piece of rows reads the
// weight twice and its gradient once. kFewestRows takes precedence, because fewer rows make a product of matrices slow.
constexpr int64_t kLogits = int64_t{1} << 24;
constexpr int64_t kFewestRows = 128;

ConstView rows_of(ConstView x, int64_t first, int64_t rows, int64_t width) {
  const size_t offset = static_cast<size_t>(first * width) * dtype_size(x.dtype);
  return {static_cast<const std::byte*>(x.data) + offset, {rows, width}, x.dtype};
}

View rows_of(View x, int64_t first, int64_t rows, int64_t width) {
  const size_t offset = static_cast<size_t>(first * width) * dtype_size(x.dtype);
  return {static_cast<std::byte*>(x.data) + offset, {rows, width}, x.dtype};
}

}  // namespace

Decoder::Decoder(const DecoderOptions& options) : options_(options) {
  if (options.in < 1 || options.classes < 1) {
    throw_user_error("decoder: sizes must be positive (in {}, classes {})", options.in, options.classes);
  }
}

Shape Decoder::logits_shape(const Shape& x) const {
  if (x.rank() < 1 || x[x.rank() - 1] != options_.in) {
    throw_user_error("decoder expects [..., {}] but its input is {}", options_.in, x.str());
  }
  return {x.numel() / options_.in, options_.classes};
}

std::vector<ParamSpec> Decoder::params() const {
  return {{"weight", {options_.classes, options_.in}, options_.init}, {"bias", {options_.classes}, {}}};
}

int64_t Decoder::rows_at_once(int64_t rows) const {
  const int64_t some = options_.rows > 0 ? options_.rows : std::max(kFewestRows, kLogits / options_.classes);
  return std::min(rows, some);
}

size_t Decoder::scratch_bytes(const Shape& x, DType type) const {
  return static_cast<size_t>(rows_at_once(logits_shape(x)[0]) * options_.classes) * dtype_size(type);
}

void Decoder::run(const LossArgs& l) const {
  const int64_t in = options_.in, classes = options_.classes, all = l.x.numel() / in, step = rows_at_once(all);
  DGC_CHECK(l.labels.numel() == all && l.labels.dtype == DType::i32, "a label for each row");
  for (int64_t first = 0; first < all; first += step) {
    const int64_t rows = std::min(step, all - first);
    const LinearArgs size{.batch = rows, .in = in, .out = classes};
    const ConstView x = rows_of(l.x, first, rows, in), labels = rows_of(l.labels, first, rows, 1);
    const View logits{l.scratch.data, {rows, classes}, l.x.dtype};
    l.backend.linear_forward(size, x, l.params[0], l.params[1], logits);
    l.backend.softmax_cross_entropy({.rows = rows,
                                     .classes = classes,
                                     .gradient_scale = l.gradient_scale,
                                     .control = l.control,
                                     .before = first == 0 ? nullptr : l.stats},
                                    logits, labels, l.dx ? logits : View(), l.stats);
    if (!l.dx) continue;
    const View dx = rows_of(l.dx, first, rows, in);
    l.backend.linear_backward(size, x, l.params[0], logits, dx, l.dparams[0], l.dparams[1]);
  }
}

void Decoder::logits(Backend& backend, ConstView x, std::span<const ConstView> params, View logits) const {
  backend.linear_forward({.batch = x.numel() / options_.in, .in = options_.in, .out = options_.classes}, x, params[0],
                         params[1], logits);
}

}  // namespace dgc
