#include "models/resnet.h"

#include <algorithm>
#include <array>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/padded_shortcut.h"
#include "layers/pool.h"

namespace dgc {
namespace {

using Stem = ResNetOptions::Stem;
using Shortcut = ResNetOptions::Shortcut;

struct ImagenetVariant {
  int64_t depth;
  std::array<int64_t, 4> blocks;
  bool bottleneck;
};
constexpr std::array<ImagenetVariant, 5> kImagenetVariants = {{{18, {2, 2, 2, 2}, false},
                                                               {34, {3, 4, 6, 3}, false},
                                                               {50, {3, 4, 6, 3}, true},
                                                               {101, {3, 4, 23, 3}, true},
                                                               {152, {3, 8, 36, 3}, true}}};

const ImagenetVariant* imagenet_variant(int64_t depth) {
  const auto* variant = std::ranges::find(kImagenetVariants, depth, &ImagenetVariant::depth);
  return variant == kImagenetVariants.end() ? nullptr : variant;
}

// Appends the blocks of one residual network, remembering how many channels the last one has.
class ResNetBuilder {
 public:
  ResNetBuilder(const ResNetOptions& options, const Shape& image) : options_(options), net_(image) {}

  Network build() { return options_.stem == Stem::cifar ? cifar() : imagenet(); }

 private:
  Network cifar() {
    if (options_.depth < 8 || (options_.depth - 2) % 6 != 0) {
      throw_user_error("model.depth: a CIFAR ResNet has 6n + 2 layers (8, 14, 20, 32, 44, 56, 110, ...), not {}",
                       options_.depth);
    }
    int64_t width = options_.width;
    int x = conv_bn("conv1", "bn1", 0, net_.shape(0)[3], width, 3, 1, true);
    for (int stage = 1; stage <= 3; ++stage, width *= 2) {
      for (int64_t block = 0; block < (options_.depth - 2) / 6; ++block) {
        x = basic_block(block_name(stage, block), x, width, stage > 1 && block == 0 ? 2 : 1);
      }
    }
    return head(x);
  }

  Network imagenet() {
    const ImagenetVariant* const variant = imagenet_variant(options_.depth);
    if (variant == nullptr) {
      throw_user_error("model.depth: an ImageNet ResNet has 18, 34, 50, 101 or 152 layers, not {}", options_.depth);
    }
    int64_t width = options_.width;
    int x = conv_bn("conv1", "bn1", 0, net_.shape(0)[3], width, 7, 2, true);
    x = net_.add("maxpool", std::make_unique<Pool>(PoolOptions{PoolKind::max, 3, 2, 1}), {x});
    for (int stage = 1; stage <= 4; ++stage, width *= 2) {
      for (int64_t block = 0; block < variant->blocks[static_cast<size_t>(stage - 1)]; ++block) {
        const int64_t stride = stage > 1 && block == 0 ? 2 : 1;
        x = variant->bottleneck ? bottleneck(block_name(stage, block), x, width, stride)
                                : basic_block(block_name(stage, block), x, width, stride);
      }
    }
    return head(x);
  }

  static std::string block_name(int stage, int64_t block) {
    return "layer" + std::to_string(stage) + "." + std::to_string(block);
  }

  int basic_block(const std::string& name, int x, int64_t out, int64_t stride) {
    const int64_t in = channels_;
    const int y = conv_bn(name + ".conv1", name + ".bn1", x, in, out, 3, stride, true);
    const int z = conv(name + ".conv2", y, out, out, 3, 1);
    return close_block(name, name + ".bn2", x, z, in, out, stride);
  }

  int bottleneck(const std::string& name, int x, int64_t width, int64_t stride) {
    const int64_t in = channels_, out = 4 * width;
    int y = conv_bn(name + ".conv1", name + ".bn1", x, in, width, 1, 1, true);
    y = conv_bn(name + ".conv2", name + ".bn2", y, width, width, 3, stride, true);
    const int z = conv(name + ".conv3", y, width, out, 1, 1);
    return close_block(name, name + ".bn3", x, z, in, out, stride);
  }

  // relu(batch_norm(z) + shortcut(x))
  int close_block(const std::string& name, const std::string& bn, int x, int z, int64_t in, int64_t out,
                  int64_t stride) {
    int shortcut = x;
    if (in != out || stride != 1) {
      if (options_.shortcut == Shortcut::projection) {
        shortcut = conv_bn(name + ".downsample.0", name + ".downsample.1", x, in, out, 1, stride, false);
      } else {
        shortcut = net_.add(name + ".shortcut", std::make_unique<PaddedShortcut>(in, out, stride), {x});
      }
    }
    channels_ = out;
    const BatchNormOptions options{.channels = out, .relu = true, .residual = true};
    return net_.add(bn, std::make_unique<BatchNorm>(options), {z, shortcut});
  }

  int conv(const std::string& name, int x, int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    const Conv2dOptions options{
        .in = in, .out = out, .kernel = kernel, .stride = stride, .pad = kernel / 2, .bias = false};
    return net_.add(name, std::make_unique<Conv2d>(options), {x});
  }

  int conv_bn(const std::string& conv_name, const std::string& bn_name, int x, int64_t in, int64_t out, int64_t kernel,
              int64_t stride, bool relu) {
    channels_ = out;
    const int y = conv(conv_name, x, in, out, kernel, stride);
    return net_.add(bn_name, std::make_unique<BatchNorm>(BatchNormOptions{.channels = out, .relu = relu}), {y});
  }

  Network head(int x) {
    x = net_.add("avgpool", std::make_unique<GlobalPool>(), {x});
    net_.add("fc", std::make_unique<Linear>(LinearOptions{channels_, options_.classes}), {x});
    return std::move(net_);
  }

  ResNetOptions options_;
  Network net_;
  int64_t channels_ = 0;
};

}  // namespace

bool is_imagenet_depth(int64_t depth) { return imagenet_variant(depth) != nullptr; }

ResNetOptions completed(ResNetOptions o) {
  if (o.stem == Stem::automatic) o.stem = is_imagenet_depth(o.depth) ? Stem::imagenet : Stem::cifar;
  const bool cifar = o.stem == Stem::cifar;
  if (o.shortcut == Shortcut::automatic) o.shortcut = cifar ? Shortcut::identity_pad : Shortcut::projection;
  if (o.width == 0) o.width = cifar ? 16 : 64;
  return o;
}

Network make_resnet(const ResNetOptions& options, const Shape& image) {
  return ResNetBuilder(completed(options), image).build();
}

}  // namespace dgc
