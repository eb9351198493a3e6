// Bytes that a plan models a step by, worked out by hand from what is read and written.
#include "kernels/counting_backend.h"

#include <catch.hpp>

using namespace dgc;

namespace {

int somewhere;  // no op looks there

// 50 numbers in, 100 out, 72 weights.
constexpr Conv2dArgs kCounted{1, 5, 5, 2, 4, 3, 3, 1, 1, 1, 1};

struct CountedConv {
  CountingBackend backend{make_cpu_backend(1), std::make_shared<CountingDevice>()};
  View x, y;
  View w{&somewhere, {4, 2, 3, 3}};
  View dw{&somewhere, {4, 2, 3, 3}};

  explicit CountedConv(DType type) : x(&somewhere, {1, 5, 5, 2}, type), y(&somewhere, {1, 5, 5, 4}, type) {}

  void forward() { backend.conv2d_forward(kCounted, x, w, {}, y); }
  void backward() {
    backend.conv2d_backward_data(kCounted, y, w, x);
    backend.conv2d_backward_weights(kCounted, x, y, dw, {});
  }
  // The bytes of each call so far.
  std::vector<std::pair<std::string, int64_t>> bytes() {
    std::vector<std::pair<std::string, int64_t>> all;
    for (const OpCost& call : backend.take_calls()) all.emplace_back(call.op, call.bytes);
    return all;
  }
};

using Bytes = std::vector<std::pair<std::string, int64_t>>;

}  // namespace

TEST_CASE("what a convolution's weights move outside of a pass, and within one", "[kernels]") {
  CountedConv in_fp32(DType::f32), in_fp16(DType::f16);
  in_fp32.forward();
  in_fp32.backward();
  // Images in 4 bytes; weights: 4 to read and 4 to write in cuDNN's order, 4 for cuDNN, 3 x 4 for a sum of gradients.
  const int64_t images = 4 * 150, weights = 72;
  CHECK(in_fp32.bytes() == Bytes{{"conv2d_forward", images + weights * (8 + 4)},
                                 {"conv2d_backward_data", images + weights * (8 + 4)},
                                 {"conv2d_backward_weights", images + weights * (4 + 12)}});
  in_fp16.forward();
  in_fp16.backward();
  const int64_t half_images = 2 * 150;
  CHECK(in_fp16.bytes() == Bytes{{"conv2d_forward", half_images + weights * (6 + 2)},
                                 {"conv2d_backward_data", half_images + weights * (6 + 2)},
                                 {"conv2d_backward_weights", half_images + weights * (2 + 10)}});

  const FilterUse uses[] = {{.filter = kCounted.filter(), .w = in_fp16.w, .dw = in_fp16.dw}};
  in_fp16.backend.with_filters(uses, DType::f16, [&] {
    in_fp16.forward();
    in_fp16.backward();
  });
  CHECK(in_fp16.bytes() == Bytes{{"load_filters", weights * 6},
                                 {"conv2d_forward", half_images + weights * 2},
                                 {"conv2d_backward_data", half_images + weights * 2},
                                 {"conv2d_backward_weights", half_images + weights * 2},
                                 {"add_filters", weights * (2 + 8)}});
}

TEST_CASE("what simple ops move", "[kernels]") {
  CountingBackend backend(make_cpu_backend(1), std::make_shared<CountingDevice>());
  const View single{&somewhere, {10}}, half{&somewhere, {10}, DType::bf16};
  backend.add(single, single);
  backend.convert(single, half);
  backend.activation_backward(Activation::relu, half, half, half);
  backend.sum_squares(single, nullptr);
  std::vector<int64_t> bytes;
  for (const OpCost& call : backend.take_calls()) bytes.push_back(call.bytes);
  CHECK(bytes == std::vector<int64_t>{3 * 40, 40 + 20, 3 * 20, 40});
}

// 1,600 elements in all, in one tensor or in two.
TEST_CASE("what compressing moves, with a guess and where too much is sent for one", "[kernels]") {
  CountingBackend backend(make_cpu_backend(1), std::make_shared<CountingDevice>());
  const auto bytes_per_element = [&](int32_t tensors, uint64_t entries) {
    DgcCompressArgs args;
    args.table.count = tensors;
    args.table.numel = 1600;
    args.header.entries = entries;
    backend.dgc_compress(args);
    const int64_t message = 2 * static_cast<int64_t>(kWireHeaderBytes) + 4 * 32 * static_cast<int64_t>(entries);
    return static_cast<double>(backend.take_calls().front().bytes - message) / 1600;
  };
  CHECK(bytes_per_element(1, 2) == 20);
  CHECK(bytes_per_element(1, 100) == 20);
  CHECK(bytes_per_element(2, 101) == 20);  // of 792 and 808 elements: 49.5 and 50.5, rounded up
  CHECK(bytes_per_element(1, 101) == 40);
  CHECK(bytes_per_element(1, 400) == 40);
}

TEST_CASE("what dealing out moves: the message once for each owner, and the rows", "[kernels]") {
  CountingBackend backend(make_cpu_backend(1), std::make_shared<CountingDevice>());
  DgcDealArgs args;
  args.table.blocks = 3;
  args.deal.owners = 4;
  args.deal.room = 50;  // of 100 entries: 2 x 25
  backend.dgc_deal(args);
  CHECK(backend.take_calls().front().bytes == 4 * (100 * 6 + 3 * 4) + 4 * 112 * 4);
}
