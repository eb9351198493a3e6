#include "models/resnet.h"

#include <algorithm>
#include <catch.hpp>
#include <map>

#include "kernels/backend.h"
#include "layers/batch_norm.h"

using namespace dgc;

namespace {

constexpr auto kProjection = ResNetOptions::Shortcut::projection;

Network imagenet(int64_t depth, int64_t classes = 1000) {
  return make_resnet({ResNetOptions::Stem::imagenet, kProjection, depth, 64, classes}, {224, 224, 3});
}

Network cifar(int64_t depth) { return make_resnet({.stem = ResNetOptions::Stem::cifar, .depth = depth}, {32, 32, 3}); }

int64_t parameters(const Network& net) { return ParamLayout(net.params()).parameters(); }

std::map<std::string, Shape> shapes(const std::vector<ParamSpec>& specs) {
  std::map<std::string, Shape> result;
  for (const ParamSpec& spec : specs) result[spec.name] = spec.shape;
  return result;
}

Shape output_of(const Network& net, const std::string& name) {
  for (size_t i = 0; i < net.nodes().size(); ++i) {
    if (net.nodes()[i].name == name) return net.shape(static_cast<int>(i) + 1);
  }
  FAIL("no layer " << name);
  return {};
}

}  // namespace

TEST_CASE("CIFAR ResNets have the parameters that their definition adds up to", "[models]") {
  const auto depth = GENERATE(8, 14, 20, 32, 44, 56, 110);
  const int64_t n = (depth - 2) / 6;
  // A 3x3 convolution and its BatchNorm: 9 in out + 2 out.
  const auto conv_bn = [](int64_t in, int64_t out) { return 9 * in * out + 2 * out; };
  const int64_t expected = conv_bn(3, 16) + 2 * n * conv_bn(16, 16) + conv_bn(16, 32) + (2 * n - 1) * conv_bn(32, 32) +
                           conv_bn(32, 64) + (2 * n - 1) * conv_bn(64, 64) + 64 * 10 + 10;
  CAPTURE(depth);
  CHECK(parameters(cifar(depth)) == expected);
  if (depth == 20) CHECK(expected == 269722);    // He et al., table 6: 0.27 M
  if (depth == 110) CHECK(expected == 1727962);  // 1.7 M
  // Projections on the two shortcuts that change the shape: 1x1 convolutions with BatchNorm.
  const auto projected = make_resnet({.shortcut = kProjection, .depth = depth}, {32, 32, 3});
  CHECK(parameters(projected) == expected + (16 * 32 + 64) + (32 * 64 + 128));
}

TEST_CASE("ImageNet ResNets have torchvision's numbers of parameters", "[models]") {
  const auto [depth, expected] = GENERATE(
      table<int64_t, int64_t>({{18, 11689512}, {34, 21797672}, {50, 25557032}, {101, 44549160}, {152, 60192808}}));
  CAPTURE(depth);
  CHECK(parameters(imagenet(depth)) == expected);
}

TEST_CASE("ResNet-50's parameters are called and shaped as torchvision's", "[models]") {
  std::map<std::string, Shape> params, buffers;
  const auto conv = [&](const std::string& name, int64_t out, int64_t in, int64_t kernel) {
    params[name + ".weight"] = {out, in, kernel, kernel};
  };
  const auto bn = [&](const std::string& name, int64_t channels) {
    params[name + ".weight"] = params[name + ".bias"] = {channels};
    buffers[name + ".running_mean"] = buffers[name + ".running_var"] = {channels};
  };
  conv("conv1", 64, 3, 7);
  bn("bn1", 64);
  int64_t in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      conv(name + ".conv1", width, in, 1), bn(name + ".bn1", width);
      conv(name + ".conv2", width, width, 3), bn(name + ".bn2", width);
      conv(name + ".conv3", 4 * width, width, 1), bn(name + ".bn3", 4 * width);
      if (block == 0) conv(name + ".downsample.0", 4 * width, in, 1), bn(name + ".downsample.1", 4 * width);
      in = 4 * width;
    }
  }
  params["fc.weight"] = {1000, 2048};
  params["fc.bias"] = {1000};
  REQUIRE(params.size() == 161);

  const Network net = imagenet(50);
  CHECK(shapes(net.params()) == params);
  CHECK(shapes(net.buffers()) == buffers);
}

TEST_CASE("ResNets halve the image where they should", "[models]") {
  const Network fifty = imagenet(50), eighteen = imagenet(18), twenty = cifar(20);
  CHECK(output_of(fifty, "conv1") == Shape{1, 112, 112, 64});
  CHECK(output_of(fifty, "maxpool") == Shape{1, 56, 56, 64});
  CHECK(output_of(fifty, "layer2.0.conv1") == Shape{1, 56, 56, 128});  // the stride sits in the 3x3 convolution
  CHECK(output_of(fifty, "layer2.0.conv2") == Shape{1, 28, 28, 128});
  CHECK(output_of(fifty, "layer4.2.bn3") == Shape{1, 7, 7, 2048});
  CHECK(output_of(fifty, "avgpool") == Shape{1, 2048});
  CHECK(output_of(fifty, "fc") == Shape{1, 1000});
  CHECK(output_of(eighteen, "layer2.0.conv1") == Shape{1, 28, 28, 128});
  CHECK(output_of(twenty, "layer1.2.bn2") == Shape{1, 32, 32, 16});
  CHECK(output_of(twenty, "layer2.0.shortcut") == Shape{1, 16, 16, 32});
  CHECK(output_of(twenty, "layer3.2.bn2") == Shape{1, 8, 8, 64});
}

TEST_CASE("ResNets' stem takes the largest pixels, and a shortcut has no ReLU of its own", "[models]") {
  const auto backend = make_cpu_backend(1);
  const Network net = imagenet(50);
  for (const Network::Node& node : net.nodes()) {
    CAPTURE(node.name);
    const bool in_shortcut = node.name.find("downsample") != std::string::npos;
    if (const auto* norm = dynamic_cast<const BatchNorm*>(node.layer.get()))
      CHECK(norm->options().relu == !in_shortcut);
    if (node.name != "maxpool") continue;
    CHECK(node.layer->saved_bytes(*backend, std::vector{Shape{1, 112, 112, 64}}, DType::f32) > 0);  // where they were
  }
}
