// On a processor, evaluation takes scratch memory for some steps of a sequence, where training keeps all of them.
#include <catch.hpp>

#include "kernels/cpu/cpu_backend.h"
#include "tensor/counting_device.h"
#include "tests/kernels/on_device.h"
#include "tests/support/wrapped_device.h"

using namespace dgc;

namespace {

class ScratchDevice : public test::WrappedDevice {
 public:
  void count(MemoryUse use, int64_t bytes) noexcept override { counted_.add(use, bytes); }
  int64_t scratch() const { return counted_.peak(MemoryUse::scratch); }

 private:
  MemoryCount counted_;
};

}  // namespace

TEST_CASE("a recurrent layer evaluates a long sequence in stretches, with the same bits", "[kernels]") {
  const auto device = std::make_shared<ScratchDevice>();
  CpuBackend backend(2, Fp32Math::exact, device);
  // 100 MiB of gates, each the product of two numbers: no sum whose order a stretch could change.
  const RnnArgs whole{.cell = RnnCell::lstm, .steps = 400, .batch = 2048, .in = 1, .hidden = 8};
  const int64_t outputs = whole.batch * whole.hidden;
  const OnDevice x(backend, random_floats(whole.steps * whole.batch, 1)), w_ih(backend, random_floats(32, 2)),
      w_hh(backend, random_floats(32 * 8, 3)), bias(backend, random_floats(32, 4));
  const RnnWeights w{w_ih, w_hh, bias, bias};
  const OnDevice y(backend, zeros(whole.steps * outputs)), in_halves(backend, zeros(whole.steps * outputs));
  const OnDevice h(backend, zeros(outputs)), c(backend, zeros(outputs));

  backend.rnn_forward(whole, x, w, {}, y, {});
  CHECK(device->scratch() < int64_t{80} * 1024 * 1024);
  RnnArgs half = whole;
  half.steps = 200;  // one stretch
  backend.rnn_forward(half, x, w, {h, c}, in_halves, {});
  backend.rnn_forward(half, x.from(half.steps * whole.batch), w, {h, c}, in_halves.from(half.steps * outputs), {});
  CHECK((y.host() == in_halves.host()));  // in parentheses, or a failure would print millions of numbers
}

TEST_CASE("CTC without a gradient keeps two steps, and has the loss that it has with one", "[kernels]") {
  constexpr int64_t kLong = 3000, kLabels = 100;
  const auto device = std::make_shared<ScratchDevice>();
  CpuBackend backend(1, Fp32Math::exact, device);
  std::vector<int32_t> row = {kLabels};
  for (int32_t i = 0; i < kLabels; ++i) row.push_back(1 + i * i % 2);
  const OnDevice logits(backend, random_floats(kLong * 3, 1)), d(backend, zeros(kLong * 3));
  const ValuesOnDevice<int32_t> lengths(backend, {kLong}), labels(backend, row);
  const auto loss = [&](View dlogits) {
    const ValuesOnDevice<double> stats(backend, {7, 7, 7});
    backend.ctc_loss({.steps = kLong, .streams = 1, .classes = 3, .most_labels = kLabels}, logits,
                     {lengths.data(), {1}, DType::i32}, {labels.data(), {1, 1 + kLabels}, DType::i32}, dlogits,
                     stats.data());
    return stats.host();
  };
  const std::vector<double> evaluated = loss({});
  CHECK(device->scratch() < 100'000);  // 2.4 MB for all steps
  CHECK(evaluated[1] == 1);
  CHECK(evaluated == loss(d));
}
