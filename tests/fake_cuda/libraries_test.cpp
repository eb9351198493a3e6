// How the backend asks cuBLAS and cuDNN, where their answers can be other ones than usual.
#include "kernels/cuda/libraries.h"

#include <cuda_runtime_api.h>

#include <catch.hpp>
#include <thread>

#include "tensor/errors.h"
#include "tests/fake_cuda/support.h"
#include "tests/kernels/on_device.h"

using namespace dgc;
using namespace dgc::test;

namespace {

std::unique_ptr<Backend> fresh_backend() { return make_cuda_backend(0, Fp32Math::exact); }

const RnnArgs kLayer{.cell = RnnCell::gru, .steps = 3, .batch = 2, .in = 16, .hidden = 16};

// The parameters of kLayer in one stretch of memory, with a gap between matrices and biases.
struct LayerRun {
  std::vector<float> y, dx, gradients;
  size_t added = 0;  // launches that add gradients from a copy
};

LayerRun run_layer(int64_t gap) {
  const auto backend = fresh_backend();
  const int64_t matrix = kLayer.gates() * kLayer.in, bias = kLayer.gates();
  const int64_t biases_at = 2 * matrix + gap;
  const OnDevice x(*backend, random_floats(kLayer.steps * kLayer.batch * kLayer.in, 1));
  const OnDevice w(*backend, random_floats(biases_at + 2 * bias, 2)), dw(*backend, zeros(biases_at + 2 * bias));
  const OnDevice y(*backend, zeros(kLayer.steps * kLayer.batch * kLayer.hidden));
  const OnDevice dy(*backend, random_floats(kLayer.steps * kLayer.batch * kLayer.hidden, 3)), dx(*backend, x.host());
  const auto saved_bytes = static_cast<int64_t>(backend->rnn_saved_bytes(kLayer, DType::f32));
  const OnDevice saved(*backend, zeros(saved_bytes / 4 + 1));
  const auto part = [](const OnDevice& of, int64_t at, int64_t n) {
    return View{of.view().f32() + at, {n}, DType::f32};
  };
  const auto before = fake_cuda::executed("add_filters");
  const RnnWeights weights{part(w, 0, matrix), part(w, matrix, matrix), part(w, biases_at, bias),
                           part(w, biases_at + bias, bias)};
  const RnnGradients gradients{part(dw, 0, matrix), part(dw, matrix, matrix), part(dw, biases_at, bias),
                               part(dw, biases_at + bias, bias)};
  backend->rnn_forward(kLayer, x, weights, {}, y, saved);
  backend->rnn_backward(kLayer, x, weights, y, saved, dy, dx, gradients);
  LayerRun run{y.host(), dx.host(), dw.host(), 0};
  run.added = fake_cuda::executed("add_filters") - before;
  run.gradients.erase(run.gradients.begin() + 2 * matrix, run.gradients.begin() + biases_at);
  return run;
}

}  // namespace

TEST_CASE("a library that is set up ends a capture of its own thread, and none of another rank's") {
  const Gpu gpu;
  const auto device = std::make_shared<CudaDevice>(0), others = device->make_beside();
  const bool same_thread = GENERATE(true, false);
  const bool blas = GENERATE(true, false);
  REQUIRE(cudaStreamBeginCapture(device->stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  bool made = false;
  const auto set_up = [&] {
    try {
      cuda::Libraries libraries(others);
      blas ? static_cast<void>(libraries.blas()) : static_cast<void>(libraries.dnn());
      made = true;
    } catch (const std::exception&) {
    }
  };
  same_thread ? set_up() : std::thread(set_up).join();
  CHECK(made == !same_thread);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(device->stream(), &graph) == (made ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
  if (made) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("a recurrent layer computes on its parameters where they lie as cuDNN wants them, and on a copy elsewhere") {
  const Gpu gpu;
  const LayerRun in_place = run_layer(0);
  CHECK(in_place.added == 0);
  fake_cuda::set({.weight_gap = 64});  // now cuDNN wants gaps between gates
  const LayerRun copied = run_layer(0);
  CHECK(copied.added == 1);
  CHECK(copied.y == in_place.y);
  CHECK(copied.dx == in_place.dx);
  CHECK(copied.gradients == in_place.gradients);
}

TEST_CASE("parameters with others between matrices and biases are copied") {
  const Gpu gpu;
  CHECK(run_layer(16).added == 1);
}

TEST_CASE("a library whose set-up fails half way is set up anew") {
  const Gpu gpu;
  const LinearArgs linear{.batch = 2, .in = 2, .out = 1};
  const Conv2dArgs conv{.batch = 1, .in_h = 2, .in_w = 2, .in_c = 1, .out_c = 1};
  const bool convolves = GENERATE(false, true);
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    CAPTURE(convolves, n);
    const auto backend = fresh_backend();
    const OnDevice x(*backend, {1, 2, 3, 4}), w(*backend, {1, 10}), y(*backend, {0, 0, 0, 0});
    const auto compute = [&] {
      convolves ? backend->conv2d_forward(conv, x, w.from(1), {}, y) : backend->linear_forward(linear, x, w, {}, y);
    };
    fake_cuda::fail(n);
    try {
      compute();
    } catch (const std::exception&) {
      ++failures;
    }
    const bool failed = !fake_cuda::failed_call().empty();
    fake_cuda::fail(0);
    compute();
    CHECK(y.host() == (convolves ? std::vector<float>{10, 20, 30, 40} : std::vector<float>{21, 43, 0, 0}));
    if (!failed) break;
  }
  CHECK(failures > 3);
}

TEST_CASE("a kernel is not blamed for an error that nobody has asked for") {
  const Gpu gpu;
  const auto backend = fresh_backend();
  const OnDevice x(*backend, {1}), y(*backend, {2});
  REQUIRE(cudaFree(y.view().f32() + 1) == cudaErrorInvalidValue);
  CHECK_NOTHROW(backend->add(x, y));
  CHECK(y.host() == std::vector<float>{3});
}

// 1 + 2^-12 needs more bits of mantissa than the 10 of TF32, which takes it for 1.
TEST_CASE("fp32 products and recurrent layers use all bits of their factors, and TF32 is used where it is asked for") {
  const Gpu gpu;
  const auto math = GENERATE(Fp32Math::exact, Fp32Math::tf32);
  const float fine = 1 + 0x1p-12f, expected = math == Fp32Math::exact ? fine : 1;
  const auto backend = make_cuda_backend(0, math);
  const OnDevice x(*backend, {fine}), one(*backend, {1}), zero(*backend, {0}), y(*backend, {0});
  const auto fresh = [&] { return OnDevice(*backend, {0}); };
  SECTION("products") {
    const LinearArgs linear{.batch = 1, .in = 1, .out = 1};
    const OnDevice dx = fresh(), dw = fresh();
    backend->linear_forward(linear, x, one, {}, y);
    backend->linear_backward(linear, one, one, x, dx, dw, {});
    CHECK(y.host() == std::vector<float>{expected});
    CHECK(dx.host() == std::vector<float>{expected});
    CHECK(dw.host() == std::vector<float>{expected});
  }
  SECTION("recurrent layers") {
    const RnnArgs layer{.cell = RnnCell::relu, .steps = 1, .batch = 1, .in = 1, .hidden = 1, .biases = false};
    const auto bytes = static_cast<int64_t>(backend->rnn_saved_bytes(layer, DType::f32));
    const OnDevice saved(*backend, zeros(bytes / 4 + 1)), dx = fresh(), dw = fresh(), dw_hh = fresh();
    const RnnWeights weights{one, zero, {}, {}};
    backend->rnn_forward(layer, x, weights, {}, y, saved);
    CHECK(y.host() == std::vector<float>{expected});
    backend->rnn_forward(layer, one, weights, {}, y, saved);
    backend->rnn_backward(layer, one, weights, y, saved, x, dx, {dw, dw_hh, {}, {}});
    CHECK(dx.host() == std::vector<float>{expected});
    CHECK(dw.host() == std::vector<float>{expected});
  }
}

TEST_CASE("recurrent layers in bf16 are refused where cuDNN has none, before anything is computed") {
  const Gpu gpu({.cudnn = 91002});
  const auto backend = fresh_backend();
  CHECK(backend->rnn_saved_bytes(kLayer, DType::f16) > 0);
  CHECK_THROWS_AS(backend->rnn_saved_bytes(kLayer, DType::bf16), UserError);
  CHECK_THROWS_WITH(backend->rnn_saved_bytes(kLayer, DType::bf16),
                    "precision: bf16 needs cuDNN 9.13 or newer for recurrent layers, and this is cuDNN 9.10.2; install "
                    "a newer one, or set precision to \"fp16\", \"tf32\" or \"fp32\"");
}
