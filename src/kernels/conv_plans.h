#pragma once

#include <compare>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/op_args.h"
#include "tensor/view.h"

// Which of cuDNN's plans computes a convolution on a GPU. Plans differ in speed, and in the order of their sums.
namespace dgc {

enum class ConvPass { forward, backward_data, backward_weights };

struct PlannedConv {
  ConvPass pass;
  Conv2dArgs args;
  DType type;
  bool adds = false;  // forward: a bias; backward_data: to what dx holds
  auto operator<=>(const PlannedConv&) const = default;
};

// "forward fp32 128x32x32x16 to 32, 3x3, stride 2x2, padding 1x1, groups 1": x is [batch, height, width, channels].
std::string text_of(const PlannedConv&);

// Plans that a run takes in the place of the first on cuDNN's list. Only this GPU and this version of cuDNN have them.
struct ConvPlans {
  std::string gpu;                           // "NVIDIA H200"
  std::string cudnn;                         // "9.19.0"
  std::map<std::string, std::string> plans;  // the plan's name by text_of(); what is missing takes the first
  std::string origin;                        // the file, for messages
};

// How long the plans of each convolution take that give the same bits every time and round no more than they may.
struct ConvTimings {
  struct Plan {
    std::string name;
    double microseconds;
  };
  struct Convolution {
    PlannedConv key;
    std::vector<Plan> plans;  // in the order of cuDNN's list; none: cuDNN has none
    const Plan& fastest() const;
  };
  std::string gpu, cudnn;
  std::vector<Convolution> convolutions;
};
using ConvTimed = std::function<void(const ConvTimings::Convolution&)>;  // called with each as soon as it is timed

}  // namespace dgc
