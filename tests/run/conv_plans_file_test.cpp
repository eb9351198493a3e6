#include "run/conv_plans_file.h"

#include <catch.hpp>

#include "run/file_io.h"
#include "tensor/errors.h"
#include "tests/support/run_files.h"

using namespace dgc;
using namespace dgc::test;

namespace {

struct PlansFile {
  PlansFile() {
    std::filesystem::create_directories(folder.path());
    config.conv_plans = (folder.path() / "plans.json").string();
  }
  std::shared_ptr<const ConvPlans> with(const std::string& text) const {
    write_file(config.conv_plans, text);
    return read_conv_plans(config);
  }
  TempRun folder;
  Config config;
};

}  // namespace

TEST_CASE("a file of plans is read as it was written, with the fastest plans") {
  const PlansFile file;
  const Conv2dArgs args{1, 8, 8, 1, 4, 3, 3, 1, 1, 1, 1, 1};
  const PlannedConv forward{ConvPass::forward, args, DType::f32}, weights{ConvPass::backward_weights, args, DType::f32};
  write_conv_plans(file.config.conv_plans,
                   {"NVIDIA H200", "9.19.0", {{forward, {{"slow", 3}, {"quick", 1}}}, {weights, {}}}});
  const auto plans = read_conv_plans(file.config);
  CHECK(plans->gpu == "NVIDIA H200");
  CHECK(plans->cudnn == "9.19.0");
  CHECK(plans->plans == std::map<std::string, std::string>{{text_of(forward), "quick"}});
  CHECK(plans->origin == "conv_plans: " + file.config.conv_plans);
  const std::string before = conv_plans_xxh64(file.config);
  CHECK(before.size() == 16);
  file.with(R"({"gpu": "", "cudnn": "", "convolutions": {}})");
  CHECK(conv_plans_xxh64(file.config) != before);
  CHECK(read_conv_plans({}) == nullptr);
  CHECK(conv_plans_xxh64({}).empty());
}

TEST_CASE("a file of plans that is none is named, and what is wrong with it") {
  const PlansFile file;
  const std::string name = "conv_plans: " + file.config.conv_plans;
  const std::string missing = name + ": cannot open this file: No such file or directory";
  CHECK_THROWS_WITH(read_conv_plans(file.config), missing);
  CHECK_THROWS_WITH(conv_plans_xxh64(file.config), missing);
  CHECK_THROWS_AS(file.with("{"), UserError);
  CHECK_THROWS_WITH(file.with("[]"), name + ": must be an object, not an array");
  CHECK_THROWS_WITH(file.with(R"({"cudnn": "9", "convolutions": {}})"), name + ": gpu is missing");
  CHECK_THROWS_WITH(file.with(R"({"gpu": 1, "cudnn": "9", "convolutions": {}})"),
                    name + ": gpu must be a string, not a number");
  CHECK_THROWS_WITH(file.with(R"({"gpu": "", "cudnn": "9", "convolutions": []})"),
                    name + ": convolutions: must be an object, not an array");
  CHECK_THROWS_WITH(file.with(R"({"gpu": "", "cudnn": "9", "convolutions": {"a": null}})"),
                    name + ": a must be a string, not null");
}
