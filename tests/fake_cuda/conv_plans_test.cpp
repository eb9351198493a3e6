// Plans of convolutions that were timed on a GPU, and trainings that take the fastest.
#include <catch.hpp>
#include <set>

#include "kernels/cuda/conv_cache.h"
#include "kernels/cuda/libraries.h"
#include "run/conv_plans_file.h"
#include "run/file_io.h"
#include "tensor/errors.h"
#include "tests/fake_cuda/support.h"
#include "tests/kernels/on_device.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tools/bench/bench.h"

using namespace dgc;
using namespace dgc::test;

namespace {

// The fake's two engines that will do, the first of which rounds fp32 to TF32.
const std::string kTensorCores = "engine 4, 12=1", kPlain = "engine 6, 12=1";
const PlannedConv kForward{ConvPass::forward, {2, 8, 8, 4, 8, 3, 3, 1, 1, 1, 1, 1}, DType::bf16};

std::shared_ptr<ConvPlans> plans_for_the_fake() {
  auto plans = std::make_shared<ConvPlans>();
  plans->gpu = "Fake H100";
  plans->cudnn = cuda::cudnn_version();
  plans->origin = "plans.json";
  return plans;
}

std::string plan_of(const PlannedConv& key, const std::shared_ptr<const ConvPlans>& chosen) {
  const auto device = std::make_shared<CudaDevice>(0);
  cuda::Libraries libraries(device);
  std::string name;
  cuda::ConvCache(Fp32Math::exact, chosen, *device).run(libraries.dnn(), *device, key, [&](const cuda::ConvPlan& plan) {
    name = plan.name();
  });
  return name;
}

std::vector<std::string> names(const ConvTimings::Convolution& convolution) {
  std::vector<std::string> all;
  for (const ConvTimings::Plan& plan : convolution.plans) all.push_back(plan.name);
  return all;
}

Config tiny_on_gpu(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"device=cuda:0", "workers_per_rank=2", "training.max_steps=4", "precision=bf16"};
  all.insert(all.end(), more.begin(), more.end());
  return tiny_config(all);
}

}  // namespace

TEST_CASE("the text of a convolution says all that it is known by") {
  CHECK(text_of(kForward) == "forward bf16 2x8x8x4 to 8, 3x3, stride 1x1, padding 1x1, groups 1");
  const Conv2dArgs speech{32, 800, 81, 32, 64, 11, 21, 1, 2, 5, 10, 4};
  CHECK(text_of({ConvPass::forward, speech, DType::f32, true}) ==
        "forward with bias fp32 32x800x81x32 to 64, 11x21, stride 1x2, padding 5x10, groups 4");
  CHECK(text_of({ConvPass::backward_data, speech, DType::f16, true}).starts_with("backward data, added fp16 32x"));
  CHECK(text_of({ConvPass::backward_data, speech, DType::f16}).starts_with("backward data fp16 32x"));
  CHECK(text_of({ConvPass::backward_weights, speech, DType::f16}).starts_with("backward weights fp16 32x"));
}

TEST_CASE("all plans of a convolution are timed that give the same bits and round no more than they may, once each") {
  const Gpu gpu;
  PlannedConv exact = kForward, added = kForward;
  exact.type = DType::f32;
  added.pass = ConvPass::backward_data;
  added.adds = true;
  const PlannedConv all[] = {kForward, exact, added};
  std::vector<std::string> told;
  const ConvTimings timings =
      time_convolutions("cuda:0", Fp32Math::exact, all, [&](const auto& one) { told.push_back(text_of(one.key)); });
  CHECK(told == std::vector{text_of(all[0]), text_of(all[1]), text_of(all[2])});
  CHECK(timings.gpu == "Fake H100");
  CHECK(timings.cudnn == cuda::cudnn_version());
  REQUIRE(timings.convolutions.size() == 3);
  CHECK(names(timings.convolutions[0]) == std::vector{kTensorCores, kPlain});
  CHECK(names(timings.convolutions[1]) == std::vector{kPlain});
  CHECK(names(timings.convolutions[2]) == std::vector{kTensorCores, kPlain});
  CHECK(time_convolutions(0, Fp32Math::tf32, {all + 1, 1}).convolutions[0].plans.size() == 2);
  const ConvTimings::Convolution example{kForward, {{"a", 3}, {"b", 2}, {"c", 2}}};
  CHECK(example.fastest().name == "b");
}

TEST_CASE("a plan that cuDNN lists and cannot execute is left out, and runs are timed as a recording") {
  const Gpu gpu;
  fake_cuda::fail(0);  // counts calls from here
  const size_t launched = fake_cuda::executed("cudaGraphLaunch");
  const auto timed = [] { return names(time_convolutions("cuda:0", Fp32Math::exact, {&kForward, 1}).convolutions[0]); };
  CHECK(timed() == std::vector{kTensorCores, kPlain});
  CHECK(fake_cuda::executed("cudaGraphLaunch") > launched);
  for (const auto& [site, times] : fake_cuda::call_sites()) {
    if (std::string(site.call) == "cudnnBackendExecute" && !site.captured) fake_cuda::fail_at(site, 1);
  }
  CHECK(timed() == std::vector{kPlain});
}

TEST_CASE("a plan that cuDNN refuses to execute is passed over for the next one, and the last one for products") {
  const int refused = GENERATE(0, 1, 2);
  CAPTURE(refused);
  const Gpu gpu({.refused_engines = refused});
  const Conv2dArgs args{.batch = 1, .in_h = 4, .in_w = 4, .in_c = 2, .out_c = 2, .kernel_h = 3, .kernel_w = 3};
  const auto run = [&](Backend& backend) {  // twice, with numbers whose sums are exact
    std::vector<float> image(32), filter(36);
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 5) - 2;
    for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i % 3) - 1;
    const OnDevice x(backend, image), w(backend, filter), b(backend, {0.5f, -1}),
        dy(backend, {1, 2, 3, 4, -4, -3, -2, 1});
    const OnDevice y(backend, zeros(8)), dx(backend, zeros(32)), dw(backend, zeros(36)), db(backend, zeros(2));
    for (int i = 0; i < 2; ++i) {
      backend.conv2d_forward(args, x, w, b, y);
      backend.conv2d_backward_data(args, dy, w, dx);
      backend.conv2d_backward_weights(args, x, dy, dw, db);
    }
    return std::vector<std::vector<float>>{y.host(), dx.host(), dw.host(), db.host()};
  };
  const size_t planned = fake_cuda::executed("convolution forward"), products = fake_cuda::executed("cublasGemmEx");
  CHECK(run(*make_cuda_backend(0, Fp32Math::tf32)) == run(*make_cpu_backend(1)));
  CHECK(fake_cuda::executed("convolution forward") - planned == (refused < 2 ? 2 : 0));
  CHECK(fake_cuda::executed("cublasGemmEx") - products == (refused < 2 ? 0 : 6));
}

// As in speech, where each length of a batch has plans of its own.
TEST_CASE("a gradient that cuDNN has refused to write is added once, also behind a pass whose gradient it wrote") {
  const int refused = GENERATE(0, 1, 2);
  CAPTURE(refused);
  const Gpu gpu;
  const auto gradient = [](Backend& backend, const OnDevice& w, const OnDevice& dw, int64_t batch) {
    const Conv2dArgs args{.batch = batch, .in_h = 4, .in_w = 4, .in_c = 2, .out_c = 2, .kernel_h = 3, .kernel_w = 3};
    std::vector<float> image(static_cast<size_t>(32 * batch)), dy(static_cast<size_t>(8 * batch));
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 5) - 2;
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i % 7) - 3;
    const View sum = dw;
    backend.device()->zero(sum.data, sum.bytes());
    const std::vector<FilterUse> uses{{args.filter(), w, dw}};
    const OnDevice x(backend, image), from(backend, dy);
    backend.with_filters(uses, DType::f32, [&] { backend.conv2d_backward_weights(args, x, from, dw, {}); });
    return dw.host();
  };
  const auto run = [&](Backend& backend) {
    const OnDevice w(backend, zeros(36)), dw(backend, zeros(36));
    fake_cuda::set({});
    std::vector<std::vector<float>> all{gradient(backend, w, dw, 1)};
    fake_cuda::set({.refused_engines = refused});
    for (int i = 0; i < 2; ++i) all.push_back(gradient(backend, w, dw, 2));
    return all;
  };
  CHECK(run(*make_cuda_backend(0, Fp32Math::tf32)) == run(*make_cpu_backend(1)));
}

TEST_CASE("a plan that has run, one that was chosen, and a GPU that has failed are not passed over") {
  const Gpu gpu;
  const Conv2dArgs args{.batch = 1, .in_h = 2, .in_w = 2, .in_c = 1, .out_c = 1};
  auto chosen = plans_for_the_fake();
  chosen->plans[text_of({ConvPass::forward, args, DType::f32})] = kPlain;
  const auto backend = make_cuda_backend(0, Fp32Math::exact), chooses = make_cuda_backend(0, Fp32Math::exact, chosen);
  const OnDevice x(*backend, {1, 2, 3, 4}), w(*backend, {10}), y(*backend, zeros(4));
  fake_cuda::fail(0);
  backend->conv2d_forward(args, x, w, {}, y);
  fake_cuda::CallSite execute;
  for (const auto& [site, times] : fake_cuda::call_sites()) {
    if (std::string(site.call) == "cudnnBackendExecute") execute = site;
  }
  REQUIRE(execute.from != nullptr);
  const auto refused = [&](Backend& by, bool forever) {
    fake_cuda::fail_at(execute, 1, forever);
    CHECK_THROWS_WITH(by.conv2d_forward(args, x, w, {}, y), Catch::StartsWith("cuDNN: cudnnBackendExecute: "));
    fake_cuda::fail(0);
  };
  refused(*backend, false);
  refused(*chooses, false);
  refused(*make_cuda_backend(0, Fp32Math::exact), true);
  backend->conv2d_forward(args, x, w, {}, y);
  CHECK(y.host() == std::vector<float>{10, 20, 30, 40});
}

TEST_CASE("a convolution that cuDNN has no plan for is left out") {
  fake_cuda::Options options;
  options.forward = fake_cuda::Algorithms::varying;
  const Gpu gpu(options);
  const TempRun folder;
  const ConvTimings timings = time_convolutions("cuda:0", Fp32Math::exact, {&kForward, 1});
  CHECK(timings.convolutions.at(0).plans.empty());
  Config config;
  config.conv_plans = (folder.path() / "plans.json").string();
  std::filesystem::create_directories(folder.path());
  write_conv_plans(config.conv_plans, timings);
  CHECK(read_conv_plans(config)->plans.empty());
}

TEST_CASE("only a GPU has plans to time") {
  const Gpu gpu;
  CHECK_THROWS_AS(time_convolutions("cpu", Fp32Math::exact, {&kForward, 1}), UserError);
  CHECK_THROWS_AS(time_convolutions("cuda:99", Fp32Math::exact, {&kForward, 1}), UserError);
}

TEST_CASE("a convolution takes the plan that was chosen for it, and the first where none was") {
  const Gpu gpu;
  const auto chosen = plans_for_the_fake();
  CHECK(plan_of(kForward, nullptr) == kTensorCores);
  CHECK(plan_of(kForward, chosen) == kTensorCores);
  chosen->plans[text_of(kForward)] = kPlain;
  CHECK(plan_of(kForward, chosen) == kPlain);
  PlannedConv other = kForward;
  other.args.batch = 3;
  CHECK(plan_of(other, chosen) == kTensorCores);
}

TEST_CASE("plans for another GPU or another cuDNN are refused, and so is one that cuDNN does not have") {
  const Gpu gpu;
  const auto chosen = plans_for_the_fake();
  chosen->plans[text_of(kForward)] = "engine 77";
  CHECK_THROWS_WITH(plan_of(kForward, chosen), "plans.json: cuDNN has no plan \"engine 77\" for the convolution \"" +
                                                   text_of(kForward) +
                                                   "\"; make the file anew with dgc bench convolutions");
  chosen->gpu = "NVIDIA H200";
  CHECK_THROWS_WITH(make_cuda_backend(0, Fp32Math::exact, chosen),
                    Catch::Matchers::StartsWith("plans.json: the plans are for NVIDIA H200 with cuDNN ") &&
                        Catch::Matchers::Contains("and this is Fake H100 with cuDNN "));
  chosen->gpu = "Fake H100";
  chosen->cudnn = "8.0.0";
  CHECK_THROWS_AS(make_cuda_backend(0, Fp32Math::exact, chosen), UserError);
}

TEST_CASE("a run takes plans from a file, and is resumed with the same file only") {
  const Gpu gpu;
  const TempRun folder;
  std::filesystem::create_directories(folder.path());
  const std::string file = (folder.path() / "plans.json").string();
  const ConvTimings timings = bench_convolutions(tiny_on_gpu({"conv_plans=" + file}));  // the file is yet to be made
  std::set<std::string> timed;
  for (const ConvTimings::Convolution& convolution : timings.convolutions) timed.insert(text_of(convolution.key));
  CHECK(timed == std::set<std::string>{"backward weights bf16 4x8x8x1 to 8, 3x3, stride 1x1, padding 1x1, groups 1",
                                       "forward bf16 4x8x8x1 to 8, 3x3, stride 1x1, padding 1x1, groups 1"});
  write_conv_plans(file, timings);
  const auto read = read_conv_plans(tiny_on_gpu({"conv_plans=" + file}));
  CHECK(read->gpu == "Fake H100");
  CHECK(read->plans.size() == 2);

  const auto whole = folder.path() / "whole", parts = folder.path() / "parts";
  train(tiny_on_gpu({"conv_plans=" + file}), {whole});
  const Config first_half = tiny_on_gpu({"conv_plans=" + file, "training.max_steps=2"});
  train(first_half, {parts});
  const std::string moved = (folder.path() / "moved.json").string();
  std::filesystem::rename(file, moved);
  CHECK_THROWS_WITH(train(tiny_on_gpu({"conv_plans=" + file}), {.out = parts, .resume = true}),
                    Catch::Matchers::StartsWith("conv_plans: " + file + ": cannot open this file"));
  CHECK_THROWS_WITH(train(tiny_on_gpu(), {.out = parts, .resume = true}),
                    Catch::Matchers::EndsWith(
                        "was trained with other conv_plans, and this run has none; resume with the file that it began "
                        "with"));
  train(tiny_on_gpu({"conv_plans=" + moved}), {.out = parts, .resume = true});
  CHECK(final_hash(parts) == final_hash(whole));

  const auto without = folder.path() / "without";
  train(tiny_on_gpu({"training.max_steps=2"}), {without});
  CHECK_THROWS_WITH(train(tiny_on_gpu({"conv_plans=" + moved}), {.out = without, .resume = true}),
                    Catch::Matchers::EndsWith("was trained with no conv_plans, and this run has " + moved +
                                              "; resume with the file that it began with"));
}
