#pragma once

#include <string>

// Networks of every kind of layer that a shipped model has, small enough for an emulated GPU.
namespace dgc::test {

// The paper's AlexNet has 61 million parameters whatever its images are, so layers of its kinds stand for it.
inline const std::string kLikeAlexNet =
    R"(model={"type": "layers", "layers": [
        {"type": "conv2d", "out": 8, "kernel": 5, "stride": 2, "pad": 2}, {"type": "relu"}, {"type": "lrn"},
        {"type": "max_pool", "kernel": 3, "stride": 2},
        {"type": "conv2d", "out": 8, "kernel": 3, "pad": 1, "groups": 2}, {"type": "relu"}, {"type": "flatten"},
        {"type": "dropout", "p": 0.5}, {"type": "linear", "out": 10}]})";

inline const std::string kSmallResNet = R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 4})";

}  // namespace dgc::test
