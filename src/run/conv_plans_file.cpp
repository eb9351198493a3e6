#include "run/conv_plans_file.h"

#include "json/text.h"
#include "run/file_io.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr size_t kMostBytes = size_t{1} << 24;
constexpr const char* kGpu = "gpu";
constexpr const char* kCudnn = "cudnn";
constexpr const char* kConvolutions = "convolutions";

std::string text_of_file(const Config& config) {
  try {
    return read_text_file(config.conv_plans, kMostBytes);
  } catch (const UserError& error) {
    throw_user_error("conv_plans: {}", error.what());
  }
}

}  // namespace

std::shared_ptr<const ConvPlans> read_conv_plans(const Config& config) {
  if (config.conv_plans.empty()) return nullptr;
  const std::string origin = "conv_plans: " + config.conv_plans;
  const Json file = parse_json(text_of_file(config), origin);
  require_object(file, origin);
  ConvPlans plans{json_string(file, kGpu, origin), json_string(file, kCudnn, origin), {}, origin};
  const Json& convolutions = json_member(file, kConvolutions, origin);
  require_object(convolutions, fmt::format("{}: {}", origin, kConvolutions));
  for (const auto& [convolution, plan] : convolutions.items()) {
    plans.plans[convolution] = json_string(convolutions, convolution.c_str(), origin);
  }
  return std::make_shared<const ConvPlans>(std::move(plans));
}

std::string conv_plans_xxh64(const Config& config) {
  if (config.conv_plans.empty()) return "";
  const std::string text = text_of_file(config);
  return xxh64_hex(text);
}

void write_conv_plans(const std::string& path, const ConvTimings& timings) {
  Json convolutions = Json::object();
  for (const ConvTimings::Convolution& convolution : timings.convolutions) {
    if (!convolution.plans.empty()) convolutions[text_of(convolution.key)] = convolution.fastest().name;
  }
  const Json file{{kGpu, timings.gpu}, {kCudnn, timings.cudnn}, {kConvolutions, std::move(convolutions)}};
  write_file(path, json_text(file, 2) + "\n");
}

void require_same_conv_plans(const Checkpoint& checkpoint, const Config& config, const std::string& xxh64) {
  const std::string there = checkpoint.manifest().values.text(kConvPlans).value_or("");
  if (there == xxh64) return;
  throw_user_error("checkpoint {} was trained with {}, and this run has {}; resume with the file that it began with",
                   checkpoint.path().string(), there.empty() ? "no conv_plans" : "other conv_plans",
                   config.conv_plans.empty() ? "none" : config.conv_plans);
}

}  // namespace dgc
