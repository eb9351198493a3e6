#include "tasks/make_layers.h"

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/lrn.h"
#include "layers/pool.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

Conv2dOptions conv2d_options(const LayerOptions& o, int64_t in) {
  return {
      .in = in, .out = o.out, .kernel = o.kernel, .stride = o.stride, .pad = o.pad, .groups = o.groups, .bias = o.bias};
}

// `in` is the last size of the layer's input: its channels or features.
std::unique_ptr<Layer> make_layer(const LayerOptions& o, int64_t in, const std::string& name) {
  switch (o.type) {
    case LayerType::conv2d:
      return std::make_unique<Conv2d>(conv2d_options(o, in));
    case LayerType::batch_norm:
      return std::make_unique<BatchNorm>(BatchNormOptions{.channels = in, .relu = o.relu});
    case LayerType::relu:
      return std::make_unique<ActivationLayer>(Activation::relu);
    case LayerType::tanh:
      return std::make_unique<ActivationLayer>(Activation::tanh);
    case LayerType::sigmoid:
      return std::make_unique<ActivationLayer>(Activation::sigmoid);
    case LayerType::max_pool:
      return std::make_unique<Pool>(PoolOptions{PoolKind::max, o.kernel, o.stride, o.pad});
    case LayerType::avg_pool:
      return std::make_unique<Pool>(PoolOptions{PoolKind::average, o.kernel, o.stride, o.pad});
    case LayerType::global_pool:
      return std::make_unique<GlobalPool>();
    case LayerType::dropout:
      return std::make_unique<Dropout>(static_cast<float>(o.p), name);
    case LayerType::lrn:
      return std::make_unique<Lrn>(
          LrnOptions{o.size, static_cast<float>(o.alpha), static_cast<float>(o.beta), static_cast<float>(o.k)});
    case LayerType::flatten:
      return std::make_unique<Flatten>();
    case LayerType::linear:
      return std::make_unique<Linear>(in, o.out, o.bias);
  }
  DGC_CHECK(false, "a layer type that make_layer does not know");
}

// A layer of a list whose options are right and fit its input.
std::unique_ptr<Layer> make_fitting_layer(const std::vector<LayerOptions>& layers, size_t i, const Shape& in) {
  try {
    auto layer = make_layer(layers[i], in[in.rank() - 1], std::to_string(i));
    layer->output_shape(std::span(&in, 1));
    return layer;
  } catch (const UserError& error) {
    throw_user_error("model.layers[{}]: {}", i, error.what());
  }
}

}  // namespace

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
