// Convolutions by cuDNN, and as matrix products where cuDNN has no plan with the same bits every time.
#include <catch.hpp>
#include <cmath>
#include <memory>

#include "kernels/cuda/conv_columns.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "tests/fake_cuda/support.h"
#include "tests/kernels/on_device.h"

using namespace dgc;
using namespace dgc::test;
using fake_cuda::Algorithms;

namespace {

constexpr fake_cuda::Options kNoAlgorithm{
    .forward = Algorithms::varying, .backward_data = Algorithms::none, .backward_filter = Algorithms::varying};

// {batch, in_h, in_w, in_c, out_c, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, groups}
const Conv2dArgs kConvolutions[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1},      {2, 7, 5, 1, 3, 3, 3, 1, 1, 1, 1, 1},
    {1, 23, 23, 3, 16, 11, 11, 4, 4, 2, 2, 1}, {2, 8, 8, 16, 16, 1, 1, 2, 2, 0, 0, 1},
    {1, 8, 8, 4, 4, 3, 3, 2, 2, 0, 0, 1},  // the last row and column are never read
    {2, 9, 6, 5, 4, 3, 2, 2, 1, 1, 0, 1},      {2, 6, 6, 4, 6, 3, 3, 1, 1, 1, 1, 2},
    {1, 5, 5, 32, 32, 3, 3, 1, 1, 1, 1, 2},    {2, 6, 6, 16, 16, 3, 3, 1, 1, 1, 1, 16},
    {2, 4, 5, 2, 3, 2, 2, 1, 3, 3, 2, 1},  // more padding than the filter is wide
    {1, 9, 45, 2, 4, 11, 41, 1, 2, 5, 20, 1},
};

// What a convolution and its gradients are made of, and their results: y, dx, dw, db.
struct ConvolutionRun {
  ConvolutionRun(const Conv2dArgs& a, Backend& backend, DType type = DType::f32)
      : args(a),
        x(backend, exact(a.batch * a.in_h * a.in_w * a.in_c, 1), type),
        w(backend, exact(a.out_c * (a.in_c / a.groups) * a.kernel_h * a.kernel_w, 2)),
        b(backend, random_floats(a.out_c, 3)),
        dy(backend, exact(a.batch * a.out_h() * a.out_w() * a.out_c, 4), type),
        y(backend, dy.host(), type),
        dx(backend, x.host(), type),
        dw(backend, w.host()),
        db(backend, b.host()) {}

  // Numbers that all types hold, so that only sums and results are rounded.
  static std::vector<float> exact(int64_t n, unsigned seed) {
    std::vector<float> values = random_floats(n, seed, -64, 64);
    for (float& value : values) value = std::round(value) / 64;
    return values;
  }
  void queue(Backend& backend) const {
    backend.conv2d_forward(args, x, w, b, y);
    backend.conv2d_backward_data(args, dy, w, dx);
    backend.conv2d_backward_weights(args, x, dy, dw, db);
  }
  std::vector<std::vector<float>> results() const { return {y.host(), dx.host(), dw.host(), db.host()}; }

  Conv2dArgs args;
  OnDevice x, w, b, dy, y, dx, dw, db;
};

}  // namespace

TEST_CASE("a convolution for which cuDNN has no deterministic plan gives the CPU's results but for rounding") {
  const Gpu gpu(kNoAlgorithm);
  const auto type = GENERATE(DType::f32, DType::f16, DType::bf16);
  const auto math = GENERATE(Fp32Math::exact, Fp32Math::tf32);
  if (type != DType::f32 && math == Fp32Math::tf32) return;
  const auto gpu_backend = make_cuda_backend(0, math), cpu_backend = make_cpu_backend(1);
  for (const Conv2dArgs& args : kConvolutions) {
    CAPTURE(type, args.in_h, args.in_c, args.out_c, args.kernel_h, args.stride_h, args.groups);
    const ConvolutionRun run(args, *gpu_backend, type), truth(args, *cpu_backend);
    truth.queue(*cpu_backend);
    const size_t products = fake_cuda::executed("cublasGemmEx"), windows = fake_cuda::executed("im2col");
    run.queue(*gpu_backend);
    const auto found = run.results(), expected = truth.results();
    CHECK(fake_cuda::executed("cublasGemmEx") - products == 3 * static_cast<size_t>(args.groups));
    CHECK(fake_cuda::executed("im2col") - windows == 3);
    // y is rounded before the bias is added, and after it.
    const double tolerance = 1e-5 + (type == DType::f32 ? 0 : 4 * rounding(type));
    CHECK(worst_error(found[0], expected[0]) < tolerance);
    CHECK(worst_error(found[1], expected[1]) < tolerance);
    CHECK(worst_error(found[2], expected[2]) < 1e-5);  // fp32 in every type of activations
    CHECK(worst_error(found[3], expected[3]) < 1e-5);
  }
}

TEST_CASE("each pass of a convolution is cuDNN's where cuDNN has a deterministic plan for it") {
  const int without = GENERATE(range(0, 3));
  CAPTURE(without);
  fake_cuda::Options options;
  (without == 0   ? options.forward
   : without == 1 ? options.backward_data
                  : options.backward_filter) = GENERATE(Algorithms::varying, Algorithms::none);
  const Gpu gpu(options);
  const char* const calls[] = {"convolution forward", "convolution backward data", "convolution backward filter"};
  const auto backend = make_cuda_backend(0, Fp32Math::exact);
  const ConvolutionRun run({2, 7, 5, 4, 6, 3, 3, 2, 1, 1, 1, 2}, *backend);
  size_t before[3], products = fake_cuda::executed("cublasGemmEx");
  for (int pass = 0; pass < 3; ++pass) before[pass] = fake_cuda::executed(calls[pass]);
  run.queue(*backend);
  backend->device()->synchronize();
  for (int pass = 0; pass < 3; ++pass) {
    CHECK(fake_cuda::executed(calls[pass]) - before[pass] == (pass == without ? 0 : 1));
  }
  CHECK(fake_cuda::executed("cublasGemmEx") - products == 2);  // one for each group
}

TEST_CASE("images that do not begin at 16 bytes are convolved by matrix products, with the same results") {
  const Gpu gpu;
  const auto backend = make_cuda_backend(0, Fp32Math::exact);
  const Conv2dArgs args{1, 3, 3, 1, 1, 3, 3, 1, 1, 1, 1, 1};
  const ConvolutionRun truth(args, *backend);
  truth.queue(*backend);
  const std::vector<float> x = truth.x.host(), dy = truth.dy.host();
  const auto one_later = [&](std::vector<float> values) {
    values.insert(values.begin(), 0.0f);
    return OnDevice(*backend, values);
  };
  const OnDevice late_x = one_later(x), late_dy = one_later(dy), y = one_later(x), dx = one_later(x);
  const OnDevice dw(*backend, truth.w.host()), db(*backend, truth.b.host());
  const auto view = [](const OnDevice& of) { return View{of.view().f32() + 1, {9}, DType::f32}; };
  const size_t products = fake_cuda::executed("cublasGemmEx");
  backend->conv2d_forward(args, view(late_x), truth.w, truth.b, view(y));
  backend->conv2d_backward_data(args, view(late_dy), truth.w, view(dx));
  backend->conv2d_backward_weights(args, view(late_x), view(late_dy), dw, db);
  const auto all_but_first = [](const OnDevice& of) {
    const std::vector<float> values = of.host();
    return std::vector<float>(values.begin() + 1, values.end());
  };
  CHECK(worst_error(all_but_first(y), truth.y.host()) < 1e-5);
  CHECK(worst_error(all_but_first(dx), truth.dx.host()) < 1e-5);
  CHECK(worst_error(dw.host(), truth.dw.host()) < 1e-5);
  CHECK(fake_cuda::executed("cublasGemmEx") - products == 3);
}

TEST_CASE(
    "the filters of a pass are brought to cuDNN at once, and their gradients back, with the bits of single calls") {
  const auto type = GENERATE(DType::f32, DType::bf16);
  const bool within = GENERATE(false, true);  // whether passes lie within another call
  const Gpu gpu;
  const auto backend = make_cuda_backend(0, Fp32Math::exact);
  std::vector<ConvolutionRun> single, together;
  for (const Conv2dArgs& args : kConvolutions) {
    single.emplace_back(args, *backend, type).queue(*backend);
    together.emplace_back(args, *backend, type);
  }
  std::vector<FilterUse> filters, with_gradients;
  for (const ConvolutionRun& run : together) {
    filters.push_back({.filter = run.args.filter(), .w = run.w.view()});
    with_gradients.push_back({.filter = run.args.filter(), .w = run.w.view(), .dw = run.dw.view()});
  }
  backend->device()->synchronize();
  const size_t loads = fake_cuda::executed("load_filters"), sums = fake_cuda::executed("add_filters");
  const auto passes = [&] {
    backend->with_filters(filters, type, [&] {
      for (const ConvolutionRun& run : together) backend->conv2d_forward(run.args, run.x, run.w, run.b, run.y);
    });
    backend->with_filters(with_gradients, type, [&] {
      for (const ConvolutionRun& run : together) {
        backend->conv2d_backward_data(run.args, run.dy, run.w, run.dx);
        backend->conv2d_backward_weights(run.args, run.x, run.dy, run.dw, run.db);
      }
    });
  };
  within ? backend->with_filters(filters, type, passes) : passes();
  backend->device()->synchronize();
  CHECK(fake_cuda::executed("load_filters") - loads == (within ? 1 : 2));
  CHECK(fake_cuda::executed("add_filters") - sums == 1);
  for (size_t i = 0; i < single.size(); ++i) CHECK(together[i].results() == single[i].results());

  SECTION("and a pass that fails leaves none behind") {
    const auto fails = [&] { backend->with_filters(with_gradients, type, [] { throw std::runtime_error("no"); }); };
    CHECK_THROWS(within ? backend->with_filters(filters, type, fails) : fails());
    backend->device()->synchronize();
    const size_t before = fake_cuda::executed("load_filters");
    together[0].queue(*backend);
    backend->device()->synchronize();
    CHECK(fake_cuda::executed("load_filters") - before == 2);
  }
}

TEST_CASE("convolutions with a cuDNN that does not describe GPUs end with one sentence") {
  const Gpu gpu({.cudnn = 90701});
  const auto backend = make_cuda_backend(0, Fp32Math::exact);
  const ConvolutionRun run(kConvolutions[0], *backend);
  CHECK_THROWS_WITH(run.queue(*backend),
                    "convolutions need cuDNN 9.8 or newer, and this is cuDNN 9.7.1; install a newer one");
}

TEST_CASE("a convolution by matrix products gives the same bits every time, recorded too") {
  const auto queued = [](uint64_t seed, bool recorded) {
    fake_cuda::Options options = kNoAlgorithm;
    options.seed = seed;
    const Gpu gpu(options);
    const auto backend = make_cuda_backend(0, Fp32Math::exact);
    const ConvolutionRun run({2, 9, 6, 4, 6, 3, 2, 2, 1, 1, 0, 2}, *backend);
    const size_t launched = fake_cuda::executed("cudaGraphLaunch");
    for (int step = 0; step < 5; ++step) {  // dw and db add up
      recorded ? backend->run_recorded({1}, [&] { run.queue(*backend); }) : run.queue(*backend);
    }
    auto results = run.results();
    CHECK((fake_cuda::executed("cudaGraphLaunch") > launched) == recorded);
    return results;
  };
  const auto first = queued(1, false);
  CHECK(queued(2, false) == first);
  CHECK(queued(3, true) == first);
}

TEST_CASE("columns that are made some windows at a time give the sums of all at once") {
  const Gpu gpu;
  const auto made = make_cuda_backend(0, Fp32Math::exact), cpu_backend = make_cpu_backend(1);
  auto& backend = dynamic_cast<CudaBackend&>(*made);
  cuda::Libraries libraries(std::dynamic_pointer_cast<CudaDevice>(backend.device()));
  const cuda::Product product{libraries.blas(), Fp32Math::exact, DType::f32};
  const Conv2dArgs args{2, 7, 5, 1, 3, 3, 3, 2, 1, 1, 1, 1};
  const ConvolutionRun truth(args, *cpu_backend);
  truth.queue(*cpu_backend);
  // 7 of the 40 windows over x at a time, 3 of the 70 over dy, and one where none would fit.
  const size_t most = GENERATE(7 * 9 * sizeof(float) + 8, 1);
  const auto conv = [&](ConvPass pass) { return cuda::ColumnConv({pass, args, DType::f32}, most); };
  const auto zeros_of = [&](size_t bytes) { return zeros(static_cast<int64_t>(bytes / sizeof(float))); };
  const auto forward = conv(ConvPass::forward), data = conv(ConvPass::backward_data);
  CHECK(forward.columns_bytes() == (most > 1 ? 7 : 1) * 9 * sizeof(float));
  CHECK(data.columns_bytes() == (most > 1 ? 2 : 1) * 27 * sizeof(float));
  const OnDevice columns(backend, zeros_of(std::max(forward.columns_bytes(), data.columns_bytes())));

  // One channel in and out of each filter row: [out, taps, in] is PyTorch's order here.
  const ConvolutionRun run(args, backend);
  forward.multiply(backend, product, run.x, run.w.view().data, run.y, columns.view().data);
  std::vector<float> y = run.y.host();
  for (size_t i = 0; i < y.size(); ++i) y[i] += run.b.host()[i % 3];
  CHECK(worst_error(y, truth.y.host()) < 1e-5);

  std::vector<float> turned;  // [in, taps from the last to the first, out]
  const std::vector<float> w = run.w.host();
  for (size_t tap = 9; tap-- > 0;) {
    for (size_t out = 0; out < 3; ++out) turned.push_back(w[out * 9 + tap]);
  }
  const OnDevice filter(backend, turned);
  data.multiply(backend, product, run.dy, filter.view().data, run.dx, columns.view().data);
  CHECK(worst_error(run.dx.host(), truth.dx.host()) < 1e-5);

  const OnDevice dfilter(backend, w);  // old values must not matter
  conv(ConvPass::backward_weights)
      .multiply_transposed(backend, product, run.x, run.dy, dfilter.view().f32(), columns.view().data);
  std::vector<float> dw = dfilter.host();
  for (size_t i = 0; i < dw.size(); ++i) dw[i] += w[i];
  CHECK(worst_error(dw, truth.dw.host()) < 1e-5);
}
