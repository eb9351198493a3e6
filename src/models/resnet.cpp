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

// Appends the blocks of one residual network. Channels that a layer reads are those of the tensor that it reads.
class ResNetBuilder {
 public:
  ResNetBuilder(const ResNetOptions& options, const Shape& image) : options_(options), net_(image) {}

  Network build() { return options_.stem == Stem::cifar ? cifar() : imagenet(); }

 private:
  // A square convolution without a bias, padded so that with a stride of 1 the image keeps its size.
  struct Filters {
    int64_t count, size, stride = 1;
  };

  Network cifar() {
    int64_t width = options_.width;
    int x = norm_relu("bn1", conv("conv1", 0, {width, 3}));
    for (int stage = 1; stage <= 3; ++stage, width *= 2) {
      for (int64_t block = 0; block < (options_.depth - 2) / 6; ++block) {
        x = basic_block(block_name(stage, block), x, width, stage > 1 && block == 0 ? 2 : 1);
      }
    }
    return head(x);
  }

  Network imagenet() {
    const ImagenetVariant* const variant = imagenet_variant(options_.depth);
    DGC_CHECK(variant != nullptr, "a depth without blocks");
    int64_t width = options_.width;
    int x = norm_relu("bn1", conv("conv1", 0, {width, 7, 2}));
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

  int basic_block(const std::string& name, int x, int64_t width, int64_t stride) {
    const int y = norm_relu(name + ".bn1", conv(name + ".conv1", x, {width, 3, stride}));
    const int z = conv(name + ".conv2", y, {width, 3});
    return close_block(name, name + ".bn2", x, z, stride);
  }

  int bottleneck(const std::string& name, int x, int64_t width, int64_t stride) {
    int y = norm_relu(name + ".bn1", conv(name + ".conv1", x, {width, 1}));
    y = norm_relu(name + ".bn2", conv(name + ".conv2", y, {width, 3, stride}));
    const int z = conv(name + ".conv3", y, {4 * width, 1});
    return close_block(name, name + ".bn3", x, z, stride);
  }

  // relu(batch_norm(z) + shortcut(x))
  int close_block(const std::string& name, const std::string& bn, int x, int z, int64_t stride) {
    return add_norm(bn, {.channels = channels(z), .relu = true, .residual = true}, {z, shortcut(name, x, z, stride)});
  }

  int shortcut(const std::string& name, int x, int z, int64_t stride) {
    const int64_t in = channels(x), out = channels(z);
    if (in == out && stride == 1) return x;
    if (options_.shortcut == Shortcut::identity_pad) {
      return net_.add(name + ".shortcut", std::make_unique<PaddedShortcut>(in, out, stride), {x});
    }
    const int y = conv(name + ".downsample.0", x, {out, 1, stride});
    return add_norm(name + ".downsample.1", {.channels = out}, {y});
  }

  int conv(const std::string& name, int x, const Filters& filters) {
    const Conv2dOptions options{.in = channels(x),
                                .out = filters.count,
                                .kernel = filters.size,
                                .stride = filters.stride,
                                .pad = filters.size / 2,
                                .bias = false};
    return net_.add(name, std::make_unique<Conv2d>(options), {x});
  }

  int norm_relu(const std::string& name, int x) { return add_norm(name, {.channels = channels(x), .relu = true}, {x}); }

  int add_norm(const std::string& name, const BatchNormOptions& options, const std::vector<int>& inputs) {
    return net_.add(name, std::make_unique<BatchNorm>(options), inputs);
  }

  Network head(int x) {
    const int64_t features = channels(x);
    x = net_.add("avgpool", std::make_unique<GlobalPool>(), {x});
    net_.add("fc", std::make_unique<Linear>(LinearOptions{features, options_.classes}), {x});
    return std::move(net_);
  }

  int64_t channels(int x) const { return net_.shape(x)[3]; }

  ResNetOptions options_;
  Network net_;
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
