// Every call of CUDA's libraries may fail. Each failure must come out as one sentence and leave nothing behind.
#include <catch.hpp>
#include <functional>

#include "kernels/backend.h"
#include "tensor/errors.h"
#include "tests/fake_cuda/support.h"
#include "tests/kernels/on_device.h"

using namespace dgc;
using namespace dgc::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Nobody reports that something could not be destroyed, or waited for before it is.
bool is_unreported(const std::string& call) {
  return has(call, "Destroy") || has(call, "Free") || has(call, "Synchronize");
}

// Where a graph finds no memory, the body is called as it is. Where cuDNN does not execute a plan, another one serves.
bool can_do_without(const std::string& call) {
  return call == "cudaGraphInstantiate" || call == "cudaGraphLaunch" || call == "cudnnBackendExecute";
}

// The error of a launch names the kernel instead. Of a GPU that has failed while something was destroyed, the next call
// tells. Some errors leave out what kind of object the call is for.
bool names(const std::string& said, const std::string& call) {
  if (call == "cudaLaunchKernelExC" && has(said, "out of memory on the GPU, in ")) return true;
  if (call == "cudaLaunchKernelExC" || is_unreported(call)) return has(said, "CUDA: ") || has(said, "cuDNN: ");
  if (has(call, "Descriptor")) return has(said, call) || has(said, "cudnnCreate...Descriptor");
  if (has(call, "cudaMalloc") && has(said, "out of memory")) return true;
  if (call == "cublasCreate" || call == "cudnnCreate") return has(said, "out of memory on the GPU, in " + call);
  if (has(call, "WorkspaceSize")) return has(said, "cudnnGetConvolution...WorkspaceSize");
  return has(said, call) || has(said, "is not available");
}

// Lets the n-th call fail, for every n.
void each_call_fails(const std::function<void()>& work, bool forever) {
  const Gpu gpu;
  work();
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    const std::string before = all_alive();
    fake_cuda::set({});
    fake_cuda::fail(n, forever);
    std::string said;
    try {
      work();
    } catch (const InternalError& error) {
      said = error.what();
    } catch (const UserError& error) {
      said = error.what();
    }
    const std::string call = fake_cuda::failed_call();
    fake_cuda::fail(0);
    fake_cuda::revive();
    if (call.empty()) break;
    CAPTURE(n, call, said);
    CHECK(all_alive() == before);
    CHECK(said.find('\n') == std::string::npos);
    if (said.empty()) {
      CHECK((is_unreported(call) || can_do_without(call)));
    } else {
      ++failures;
      CHECK(names(said, call));
    }
  }
  CHECK(failures > 0);
}

std::unique_ptr<Backend> on_gpu() { return make_cuda_backend(0, Fp32Math::exact); }

void use_copies() {
  const auto backend = on_gpu();
  const auto& device = backend->device();
  const float number = 1;
  const Buffer memory(device, sizeof(number));
  device->copy_in(memory.data(), &number, sizeof(number));
  const auto upload = device->make_upload(sizeof(number));
  upload->stage(&number, sizeof(number));
  upload->arrive();
  upload->release();
  const auto download = device->make_download(sizeof(number));
  download->start(memory.data());
  download->ready();
  download->wait();
  const auto watch = device->make_stopwatch();
  watch->start();
  watch->stop();
  watch->milliseconds();
}

void use_libraries() {
  const auto backend = on_gpu();
  const Conv2dArgs conv{.batch = 1, .in_h = 4, .in_w = 4, .in_c = 2, .out_c = 2, .kernel_h = 3, .kernel_w = 3};
  const OnDevice x(*backend, zeros(32)), w(*backend, zeros(36)), b(*backend, zeros(2)), y(*backend, zeros(8));
  backend->conv2d_forward(conv, x, w, b, y);
  backend->conv2d_backward_data(conv, y, w, x);
  backend->conv2d_backward_weights(conv, x, y, w, b);
  const LinearArgs linear{.batch = 4, .in = 8, .out = 2};
  const OnDevice factors(*backend, zeros(16));
  backend->linear_forward(linear, x, factors, b, y);
  backend->linear_backward(linear, x, factors, y, x, factors, b);
  const RnnArgs rnn{.steps = 2, .batch = 2, .in = 8, .hidden = 2};
  const OnDevice w_ih(*backend, zeros(64)), w_hh(*backend, zeros(16)), bias(*backend, zeros(8));
  const auto bytes = static_cast<int64_t>(backend->rnn_saved_bytes(rnn, DType::f32));
  const OnDevice saved(*backend, zeros(bytes / 4 + 1));
  backend->rnn_forward(rnn, x, {w_ih, w_hh, bias, bias}, {}, y, saved);
  backend->rnn_backward(rnn, x, {w_ih, w_hh, bias, bias}, y, saved, y, x, {w_ih, w_hh, bias, bias});
}

void use_recordings() {
  const auto backend = on_gpu();
  const auto lane = backend->make_lane();
  const OnDevice x(*backend, {1}), y(*backend, {0});
  for (int step = 0; step < 5; ++step) {
    backend->run_recorded({1}, [&] {
      backend->add(x, y);
      lane->post([&] { lane->backend().add(x, y); });
      lane->drain();
    });
  }
  backend->device()->synchronize();
}

}  // namespace

TEST_CASE("a call of CUDA that fails ends in one sentence that names it, and leaves nothing behind") {
  const bool forever = GENERATE(false, true);
  SECTION("copies") { each_call_fails(use_copies, forever); }
  SECTION("libraries") { each_call_fails(use_libraries, forever); }
  SECTION("recordings") { each_call_fails(use_recordings, forever); }
}
