#include "kernels/conv_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace dgc {
namespace {

std::string_view name_of(DType type) {
  constexpr std::string_view kNames[] = {"fp32", "fp16", "bf16", "int32"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view name_of(const PlannedConv& key) {
  switch (key.pass) {
    case ConvPass::forward:
      return key.adds ? "forward with bias" : "forward";
    case ConvPass::backward_data:
      return key.adds ? "backward data, added" : "backward data";
    case ConvPass::backward_weights:
      return "backward weights";
  }
  return "";
}

}  // namespace

std::string text_of(const PlannedConv& key) {
  const Conv2dArgs& a = key.args;
  return fmt::format("{} {} {}x{}x{}x{} to {}, {}x{}, stride {}x{}, padding {}x{}, groups {}", name_of(key),
                     name_of(key.type), a.batch, a.in_h, a.in_w, a.in_c, a.out_c, a.kernel_h, a.kernel_w, a.stride_h,
                     a.stride_w, a.pad_h, a.pad_w, a.groups);
}

const ConvTimings::Plan& ConvTimings::Convolution::fastest() const {
  return *std::ranges::min_element(plans, {}, &Plan::microseconds);
}

}  // namespace dgc
