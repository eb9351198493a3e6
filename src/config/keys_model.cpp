#include "config/keys.h"

namespace dgc {

void add_model_keys(Keys& keys) {
  auto model = Section<Config>(keys).section("model", &Config::model);
  model.select("type", &ModelOptions::type,
               "`resnet`, `alexnet` (grouped convolutions), your own list of `layers`, `lstm_lm`: a word model of "
               "embedding, LSTM layers and decoder, or `deep_speech`: characters from sound, by convolutions, "
               "recurrent layers and CTC");
  model
      .add("depth", &ModelOptions::depth,
           "6n+2 (8, 14, 20, ...) with the CIFAR stem; 18, 34, 50, 101, 152 with ImageNet's")
      .only({"resnet"})
      .must_be_given()
      .at_least(8)
      .at_most(1202);
  model.add("classes", &ModelOptions::classes, "Outputs")
      .only({"resnet", "alexnet"})
      .must_be_given()
      .at_least(2)
      .at_most(1000000);
  model
      .add("width", &ModelOptions::width,
           "Channels of the first stage; 0: 16 with the CIFAR stem, 64 with ImageNet's (which allows nothing else)")
      .only({"resnet"})
      .at_least(0)
      .at_most(4096);
  model
      .add("stem", &ModelOptions::stem,
           "`cifar`: 3x3, three stages; `imagenet`: 7x7 and a max pool, four stages; `auto`: `imagenet` for its five "
           "depths, else `cifar`")
      .only({"resnet"});
  model
      .add(
          "shortcut", &ModelOptions::shortcut,
          "Where the shape changes: zero padding (no parameters) or a 1x1 convolution; `auto`: `identity_pad` with the "
          "CIFAR stem, `projection` with ImageNet's")
      .only({"resnet"});
  model.add("dropout", &ModelOptions::dropout, "Share dropped before each of the first two linear layers")
      .only({"alexnet"})
      .at_least(0)
      .less_than(1);
  model.add("layers", &ModelOptions::layers, "The network, input first; see below")
      .only({"layers"})
      .must_be_given()
      .items(1);

  const std::vector<std::string> lm = {"lstm_lm"};
  constexpr int64_t kWidest = 1000000;
  auto lstm = model.part(&ModelOptions::lstm);
  lstm.add("vocabulary", &LstmModelOptions::vocabulary,
           "Words; 0: as many as the data has. `dgc plan`, which does not open the data, needs a number")
      .only(lm)
      .at_least(0);
  lstm.add("hidden", &LstmModelOptions::hidden, "Width of each LSTM layer")
      .only(lm)
      .must_be_given()
      .at_least(1)
      .at_most(kWidest);
  lstm.add("embedding", &LstmModelOptions::embedding, "Width of a word's vector; 0: `hidden`, which `tied` demands")
      .only(lm)
      .at_least(0)
      .at_most(kWidest);
  lstm.add("layers", &LstmModelOptions::layers, "LSTM layers").only(lm).at_least(1).at_most(1000);
  lstm.add("dropout", &LstmModelOptions::dropout, "Share dropped after the embedding and after each LSTM layer")
      .only(lm)
      .at_least(0)
      .less_than(1);
  lstm.add("tied", &LstmModelOptions::tied,
           "The decoder's matrix is the embedding's: one tensor, counted and sent once")
      .only(lm);
  lstm.add("init", &LstmModelOptions::init, "Weights start uniform in +-`init`, the decoder's bias at 0")
      .only(lm)
      .more_than(0)
      .at_most(100);
  add_speech_model_keys(model);
}

const Keys& layer_keys() {
  static const Keys all = [] {
    constexpr int64_t kMostChannels = 1000000, kLargestKernel = 1000;
    const std::vector<std::string> pools = {"max_pool", "avg_pool"};
    Keys keys;
    Section<LayerOptions> layer(keys);
    layer.select("type", &LayerOptions::type, "What the layer does");
    layer.add("out", &LayerOptions::out, "Output channels or features")
        .only({"conv2d", "linear"})
        .must_be_given()
        .at_least(1)
        .at_most(kMostChannels);
    layer.add("kernel", &LayerOptions::kernel, "Side of the window, in pixels")
        .only({"conv2d", "max_pool", "avg_pool"})
        .must_be_given()
        .at_least(1)
        .at_most(kLargestKernel);
    layer.add("stride", &LayerOptions::stride, "Pixels from one window to the next")
        .only({"conv2d"})
        .at_least(1)
        .at_most(kLargestKernel);
    layer.add("stride", &LayerOptions::stride, "Pixels from one window to the next")
        .only(pools)
        .must_be_given()
        .at_least(1)
        .at_most(kLargestKernel);
    layer.add("pad", &LayerOptions::pad, "Pixels of padding on every side")
        .only({"conv2d", "max_pool", "avg_pool"})
        .at_least(0)
        .at_most(kLargestKernel);
    layer.add("groups", &LayerOptions::groups, "Groups that the channels are split into, each convolved by itself")
        .only({"conv2d"})
        .at_least(1)
        .at_most(kMostChannels);
    layer.add("bias", &LayerOptions::bias, "Adds a learned constant per output").only({"conv2d", "linear"});
    layer.add("relu", &LayerOptions::relu, "With a ReLU behind it").only({"batch_norm"});
    layer.add("p", &LayerOptions::p, "Share that is dropped").only({"dropout"}).at_least(0).less_than(1);
    layer.add("size", &LayerOptions::size, "Channels in a window").only({"lrn"}).at_least(1).at_most(kMostChannels);
    layer.add("alpha", &LayerOptions::alpha, "y = x / (k + alpha / size * sum of x^2)^beta")
        .only({"lrn"})
        .at_least(0)
        .at_most(1000);
    layer.add("beta", &LayerOptions::beta, "See `alpha`").only({"lrn"}).at_least(0).at_most(1000);
    layer.add("k", &LayerOptions::k, "See `alpha`").only({"lrn"}).more_than(0).at_most(1000);
    return keys;
  }();
  return all;
}

}  // namespace dgc
