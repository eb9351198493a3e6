// Arrays of more than 2^31 and 2^32 elements, of which a few are written and read. Such arrays are for a GPU with the
// memory for them: the tests [large], which run on request alone (test_kernels "[large]"). The same checks of small
// arrays run on every backend.
#include <algorithm>
#include <array>
#include <bit>
#include <catch.hpp>
#include <string_view>

#include "tensor/errors.h"
#include "tests/kernels/dgc_case.h"
#include "tests/kernels/kernel_backends.h"

using namespace dgc;
using namespace dgc::test;

namespace {

constexpr int64_t kTwo31 = int64_t{1} << 31, kTwo32 = int64_t{1} << 32;

// Zeros in device memory.
class LargeArray {
 public:
  LargeArray(Backend& backend, int64_t numel, DType type = DType::f32)
      : buffer_(backend.device(), static_cast<size_t>(numel) * dtype_size(type)), numel_(numel), type_(type) {}

  operator View() const { return {buffer_.data(), {numel_}, type_}; }
  operator ConstView() const { return View(*this); }
  float* f32() const { return buffer_.f32(); }

  // Values are such that bf16 has them too.
  void set(int64_t at, float value) const {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto half = static_cast<uint16_t>(bits >> 16);
    const void* const from = type_ == DType::f32 ? static_cast<const void*>(&bits) : &half;
    buffer_.device().copy_in(element(at), from, dtype_size(type_));
  }
  float get(int64_t at) const {
    uint32_t bits = 0;
    uint16_t half = 0;
    buffer_.device().copy_out(type_ == DType::f32 ? static_cast<void*>(&bits) : &half, element(at), dtype_size(type_));
    return std::bit_cast<float>(type_ == DType::f32 ? bits : uint32_t{half} << 16);
  }

 private:
  std::byte* element(int64_t at) const {
    return static_cast<std::byte*>(buffer_.data()) + static_cast<size_t>(at) * dtype_size(type_);
  }

  Buffer buffer_;
  int64_t numel_;
  DType type_;
};

// The elements of an array that are not zero: the first, one in the middle, and the last.
using Marked = std::array<int64_t, 3>;
constexpr std::array<float, 3> kMarks{1.5f, 2.f, 3.25f};

void mark(const LargeArray& array, const Marked& marked) {
  for (size_t i = 0; i < marked.size(); ++i) array.set(marked[i], kMarks[i]);
}

// Looks at the neighbours too.
template <typename Function>
void check_marks(const LargeArray& array, const Marked& marked, const Function& expected) {
  for (size_t i = 0; i < marked.size(); ++i) {
    CAPTURE(marked[i]);
    CHECK(array.get(marked[i]) == expected(kMarks[i]));
    if (i > 0) CHECK(array.get(marked[i] - 1) == 0);
    if (i < 2) CHECK(array.get(marked[i] + 1) == 0);
  }
}

void check_large_sum(Backend& backend, int64_t numel, int64_t middle) {
  const Marked marked{0, middle, numel - 1};
  const LargeArray rounded(backend, numel, DType::bf16);
  {
    const LargeArray x(backend, numel);
    mark(x, marked);
    backend.convert(x, rounded);
  }
  check_marks(rounded, marked, [](float x) { return x; });

  const LargeArray sum(backend, numel, DType::bf16);
  mark(sum, marked);
  backend.add(rounded, sum);
  check_marks(sum, marked, [](float x) { return 2 * x; });
}

// The larger of two pixels of 64 channels, of each image. `middle` is an element of the images.
void check_large_pool(Backend& backend, int64_t images, int64_t middle) {
  const int64_t channels = 64, numel = images * 2 * channels;
  const Marked marked{0, middle, numel - 1};
  const LargeArray x(backend, numel, DType::bf16), y(backend, numel / 2, DType::bf16);
  mark(x, marked);
  backend.pool_forward({PoolKind::max, images, 1, 2, channels, 1, 2, 1, 2, 0, 0}, x, y, {});
  Marked pooled{};
  std::ranges::transform(marked, pooled.begin(),
                         [&](int64_t at) { return at / (2 * channels) * channels + at % channels; });
  check_marks(y, pooled, [](float largest) { return largest; });
}

// A message of three entries of one tensor. The host has none of its arenas.
DgcCase large_message(int64_t numel) {
  DgcCase c({});
  DgcSegment s;
  s.numel = numel;
  s.k = 3;
  s.offsets_at = 4 * static_cast<uint64_t>(s.blocks());
  s.values_at = s.offsets_at + 8;
  c.header.tensors = 1;
  c.header.entries = 3;
  c.header.payload_bytes = (s.values_at + 12 + 15) / 16 * 16;
  c.segments = {s};
  c.guesses.resize(1);
  c.message.assign(sizeof(WireHeader) + c.header.payload_bytes, std::byte{});
  return c;
}

void check_entries(const DgcCase& c, const Marked& marked) {
  const std::vector<Entry> entries = entries_of(c);
  REQUIRE(entries.size() == marked.size());
  for (size_t i = 0; i < marked.size(); ++i) {
    CHECK(entries[i].element == marked[i]);
    CHECK(entries[i].value == kMarks[i]);
  }
  DgcCase sealed = c;
  seal(sealed);
  CHECK(sealed.message == c.message);
}

// Two steps of one tensor: what is sent, first without a guess and then with one, and the weights that it steps, first
// where something was sent and then all, because of the weight decay.
void check_large_tensor(Backend& backend, int64_t numel, int64_t middle) {
  const Marked marked{0, middle, numel - 1};
  const int64_t arena = (numel + 31) / 16 * 16;
  DgcCase c = large_message(numel);
  std::vector<StepControl> controls(1);
  controls[0].step = c.step;
  controls[0].lr = 0.5f;
  const DgcTableMemory table = table_of(backend, c.segments);
  const Copy guesses(backend, c.guesses);
  const Copy control(backend, controls);
  const Copy message(backend, c.message);
  {
    const LargeArray g(backend, arena), u(backend, arena), v(backend, arena);
    mark(g, marked);
    DgcCompressArgs args;
    args.table = table.table();
    args.guesses = guesses.data();
    args.g = g.f32();
    args.u = u.f32();
    args.v = v.f32();
    args.control = control.data();
    args.momentum = 0.5f;
    args.header = c.header;
    args.message = message.data();
    for (const bool guessed : {false, true}) {
      CAPTURE(guessed);
      backend.dgc_compress(args);
      message.fetch(), guesses.fetch();
      check_entries(c, marked);
      CHECK(c.guesses[0].hit == guessed);
      check_marks(v, marked, [](float) { return 0.f; });
    }
  }
  const LargeArray sum(backend, arena), m(backend, arena), w(backend, arena);
  DgcApplyArgs args;
  args.table = table.table();
  args.messages = message.data();
  args.workers = 1;
  args.header = c.header;
  args.control = control.data();
  args.sum = sum.f32();
  args.m = m.f32();
  args.w = w.f32();
  args.momentum = 0.5f;
  backend.dgc_apply(args);
  check_marks(w, marked, [](float g) { return -0.5f * g; });
  args.weight_decay = 0.25f;
  backend.dgc_apply(args);
  check_marks(w, marked, [](float g) {
    const float before = -0.5f * g;
    return before - 0.5f * (g + 0.25f * before);
  });
  check_marks(sum, marked, [](float) { return 0.f; });
  control.fetch();
  CHECK(controls[0].fault.kind == WireFaultKind::none);
}

template <typename Check>
void on_large_gpu(const Check& check) {
  if (cuda_devices().empty()) {
    WARN("skipped: there is no GPU");
    return;
  }
  try {
    check(*make_cuda_backend(cuda_devices().at(0), Fp32Math::exact));
  } catch (const UserError& error) {
    if (!std::string_view(error.what()).starts_with("out of memory")) throw;
    WARN("skipped: " << error.what());
  }
}

}  // namespace

TEST_CASE("the ends of an array in 16 bits: conversion and sum", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  CAPTURE(backend->name());
  check_large_sum(*backend, 5003, 2500);
}

TEST_CASE("the ends of an array in 16 bits: pooling", "[kernels]") {
  const auto backend = GENERATE(from_range(half_backends())).make();
  CAPTURE(backend->name());
  check_large_pool(*backend, 9, 600);
}

TEST_CASE("the ends of a compressed tensor: its message and its weights", "[dgc]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  check_large_tensor(*backend, 70001, 65536);
}

TEST_CASE("the ends of more than 2^32 elements in 16 bits: conversion and sum", "[.][large]") {
  on_large_gpu([](Backend& backend) { check_large_sum(backend, kTwo32 + 17, kTwo31); });
}

TEST_CASE("the ends of more than 2^32 elements in 16 bits: pooling", "[.][large]") {
  on_large_gpu([](Backend& backend) { check_large_pool(backend, kTwo32 / 128 + 1, kTwo31); });
}

// A tensor has fewer than 2^32 elements (DgcSegment): an element's index within it has 32 bits.
TEST_CASE("the ends of the largest compressed tensor: its message and its weights", "[.][large]") {
  on_large_gpu([](Backend& backend) { check_large_tensor(backend, kTwo32 - 1, kTwo31); });
}
