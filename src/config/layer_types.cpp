#include "config/layer_types.h"

#include "config/table.h"
#include "layers/activation.h"
#include "layers/flatten.h"
#include "tensor/errors.h"

namespace dgc {

// JSON has one number for both sides.
template <>
struct JsonValue<Extent> {
  static void describe_key(Key& key) { describe(key, int64_t{}); }
  static Json to(const Extent& value) { return value.h; }
  static Extent from(const Json& json) { return json.get<int64_t>(); }
};

namespace {

using Made = std::unique_ptr<Layer>;

constexpr int64_t kMostChannels = 1000000, kLargestKernel = 1000;

void no_keys(const Section<LayerOptions>&) {}

void conv2d_keys(const Section<LayerOptions>& layer) {
  const auto conv2d = layer.part(&LayerOptions::conv2d);
  conv2d.add("out", &Conv2dOptions::out, "Output channels or features")
      .must_be_given()
      .at_least(1)
      .at_most(kMostChannels);
  conv2d.add("kernel", &Conv2dOptions::kernel, "Side of the window, in pixels")
      .must_be_given()
      .at_least(1)
      .at_most(kLargestKernel);
  conv2d.add("stride", &Conv2dOptions::stride, "Pixels from one window to the next")
      .at_least(1)
      .at_most(kLargestKernel);
  conv2d.add("pad", &Conv2dOptions::pad, "Pixels of padding on every side").at_least(0).at_most(kLargestKernel);
  conv2d.add("groups", &Conv2dOptions::groups, "Groups that the channels are split into, each convolved by itself")
      .at_least(1)
      .at_most(kMostChannels);
  conv2d.add("bias", &Conv2dOptions::bias, "Adds a learned constant per output");
}

Made make_conv2d(const LayerOptions& o, int64_t in, const std::string&) {
  Conv2dOptions conv2d = o.conv2d;
  conv2d.in = in;
  return std::make_unique<Conv2d>(conv2d);
}

void batch_norm_keys(const Section<LayerOptions>& layer) {
  layer.part(&LayerOptions::batch_norm).add("relu", &BatchNormOptions::relu, "With a ReLU behind it");
}

Made make_batch_norm(const LayerOptions& o, int64_t in, const std::string&) {
  BatchNormOptions batch_norm = o.batch_norm;
  batch_norm.channels = in;
  return std::make_unique<BatchNorm>(batch_norm);
}

template <Activation kind>
Made make_activation(const LayerOptions&, int64_t, const std::string&) {
  return std::make_unique<ActivationLayer>(kind);
}

void pool_keys(const Section<LayerOptions>& layer) {
  const auto pool = layer.part(&LayerOptions::pool);
  pool.add("kernel", &PoolOptions::kernel, "Side of the window, in pixels")
      .must_be_given()
      .at_least(1)
      .at_most(PoolArgs::kMostKernel);
  pool.add("stride", &PoolOptions::stride, "Pixels from one window to the next")
      .must_be_given()
      .at_least(1)
      .at_most(kLargestKernel);
  pool.add("pad", &PoolOptions::pad, "Pixels of padding on every side").at_least(0).at_most(kLargestKernel);
}

template <PoolKind kind>
Made make_pool(const LayerOptions& o, int64_t, const std::string&) {
  PoolOptions pool = o.pool;
  pool.kind = kind;
  return std::make_unique<Pool>(pool);
}

Made make_global_pool(const LayerOptions&, int64_t, const std::string&) { return std::make_unique<GlobalPool>(); }

void dropout_keys(const Section<LayerOptions>& layer) {
  layer.part(&LayerOptions::dropout).add("p", &DropoutOptions::p, "Share that is dropped").at_least(0).less_than(1);
}

Made make_dropout(const LayerOptions& o, int64_t, const std::string& name) {
  return std::make_unique<Dropout>(o.dropout, name);
}

void lrn_keys(const Section<LayerOptions>& layer) {
  const auto lrn = layer.part(&LayerOptions::lrn);
  lrn.add("size", &LrnOptions::size, "Channels in a window, an odd number").at_least(1).at_most(LrnArgs::kMostSize);
  lrn.add("alpha", &LrnOptions::alpha, "y = x / (k + alpha / size * sum of x^2)^beta").at_least(0).at_most(1000);
  lrn.add("beta", &LrnOptions::beta, "See `alpha`").at_least(0).at_most(1000);
  lrn.add("k", &LrnOptions::k, "See `alpha`").more_than(0).at_most(1000);
}

Made make_lrn(const LayerOptions& o, int64_t, const std::string&) { return std::make_unique<Lrn>(o.lrn); }

Made make_flatten(const LayerOptions&, int64_t, const std::string&) { return std::make_unique<Flatten>(); }

void linear_keys(const Section<LayerOptions>& layer) {
  const auto linear = layer.part(&LayerOptions::linear);
  linear.add("out", &LinearOptions::out, "Output channels or features")
      .must_be_given()
      .at_least(1)
      .at_most(kMostChannels);
  linear.add("bias", &LinearOptions::bias, "Adds a learned constant per output");
}

Made make_linear(const LayerOptions& o, int64_t in, const std::string&) {
  LinearOptions linear = o.linear;
  linear.in = in;
  return std::make_unique<Linear>(linear);
}

// Makes layer i of a list. Throws UserError that names the layer if its options are wrong or do not fit its input.
Made make_fitting_layer(const std::vector<LayerOptions>& layers, size_t i, const Shape& in) {
  try {
    auto layer = row_named(layer_types(), layers[i].type).make(layers[i], in[in.rank() - 1], std::to_string(i));
    layer->output_shape(std::span(&in, 1));
    return layer;
  } catch (const UserError& error) {
    throw_user_error("model.layers[{}]: {}", i, error.what());
  }
}

}  // namespace

const std::vector<LayerType>& layer_types() {
  static const std::vector<LayerType> all = {{"conv2d", conv2d_keys, make_conv2d},
                                             {"batch_norm", batch_norm_keys, make_batch_norm},
                                             {"relu", no_keys, make_activation<Activation::relu>},
                                             {"tanh", no_keys, make_activation<Activation::tanh>},
                                             {"sigmoid", no_keys, make_activation<Activation::sigmoid>},
                                             {"max_pool", pool_keys, make_pool<PoolKind::max>},
                                             {"avg_pool", pool_keys, make_pool<PoolKind::average>},
                                             {"global_pool", no_keys, make_global_pool},
                                             {"dropout", dropout_keys, make_dropout},
                                             {"lrn", lrn_keys, make_lrn},
                                             {"flatten", no_keys, make_flatten},
                                             {"linear", linear_keys, make_linear}};
  return all;
}

const Keys& layer_keys() {
  static const Keys all = [] {
    Keys keys;
    Section<LayerOptions> layer(keys);
    layer.select("type", &LayerOptions::type, names_of(layer_types()), "What the layer does");
    for (const LayerType& type : layer_types()) type.add_keys(layer.only({type.name}));
    Keys grouped;  // keys of the same name lie side by side
    for (const Key& key : keys) {
      const auto last =
          std::find_if(grouped.rbegin(), grouped.rend(), [&](const Key& k) { return k.path == key.path; });
      grouped.insert(last == grouped.rend() ? grouped.end() : last.base(), key);
    }
    return grouped;
  }();
  return all;
}

Network make_layer_list(const std::vector<LayerOptions>& layers, const Shape& image) {
  Network net(image);
  int x = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    x = net.add(std::to_string(i), make_fitting_layer(layers, i, net.shape(x)), {x});
  }
  if (net.shape(x).rank() != 2) {
    throw_user_error("model.layers: the last layer must give [batch, classes] but gives {}; end with a \"linear\"",
                     net.shape(x).str());
  }
  return net;
}

}  // namespace dgc
