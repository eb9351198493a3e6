#include "config/model_types.h"

#include <algorithm>
#include <set>

#include "config/check_value.h"
#include "config/data_types.h"
#include "config/layer_types.h"
#include "config/table.h"
#include "data/speech/alphabet.h"
#include "data/speech/features.h"
#include "json/nearest.h"
#include "tensor/counted.h"

namespace dgc {

template <>
inline constexpr auto kEnumNames<ResNetOptions::Stem> = std::to_array<std::string_view>({"auto", "cifar", "imagenet"});
template <>
inline constexpr auto kEnumNames<ResNetOptions::Shortcut> = std::to_array<std::string_view>({"auto", "identity_pad",
                                                                                             "projection"});
template <>
inline constexpr auto kEnumNames<RnnCell> = std::to_array<std::string_view>({"lstm", "gru", "tanh", "relu"});

namespace {

constexpr int64_t kWidest = 1000000;

void complete_nothing(Config&, const Origin&) {}

template <class Part>
Key& add_classes(const Part& part, auto member) {
  return part.add("classes", member, "Outputs").must_be_given().at_least(2).at_most(1000000);
}

void resnet_keys(const Section<ModelOptions>& model) {
  const auto resnet = model.part(&ModelOptions::resnet);
  resnet
      .add("depth", &ResNetOptions::depth,
           "6n+2 (8, 14, 20, ...) with the CIFAR stem; 18, 34, 50, 101, 152 with ImageNet's")
      .must_be_given()
      .at_least(8)
      .at_most(1202);
  add_classes(resnet, &ResNetOptions::classes);
  resnet
      .add("width", &ResNetOptions::width,
           "Channels of the first stage; 0: 16 with the CIFAR stem, 64 with ImageNet's (which allows nothing else)")
      .at_least(0)
      .at_most(4096);
  resnet.add("stem", &ResNetOptions::stem,
             "`cifar`: 3x3, three stages; `imagenet`: 7x7 and a max pool, four stages; `auto`: `imagenet` for its five "
             "depths, else `cifar`");
  resnet.add(
      "shortcut", &ResNetOptions::shortcut,
      "Where the shape changes: zero padding (no parameters) or a 1x1 convolution; `auto`: `identity_pad` with the "
      "CIFAR stem, `projection` with ImageNet's");
}

void complete_resnet(Config& config, const Origin& origin) {
  using Options = ResNetOptions;
  const Options& model = config.model.resnet = completed(config.model.resnet);
  if (model.stem == Options::Stem::cifar) {
    if (model.depth % 6 == 2) return;
    origin.refuse("model.depth", fmt::format("{} is no depth of a CIFAR ResNet (6n+2: 8, 14, 20, 26, 32, 44, 56, 110, "
                                             "...), nor of ImageNet's 18, 34, 50, 101, 152",
                                             model.depth));
  }
  if (!is_imagenet_depth(model.depth)) {
    origin.refuse("model.depth",
                  fmt::format("{} is none of 18, 34, 50, 101, 152, which model.stem \"imagenet\" needs", model.depth));
  }
  if (model.shortcut == Options::Shortcut::identity_pad) {
    origin.refuse("model.shortcut", "\"identity_pad\" goes with model.stem \"cifar\"; use \"projection\"");
  }
  constexpr int64_t kImagenetWidth = 64;
  if (model.width != kImagenetWidth) {
    origin.refuse("model.width",
                  fmt::format("with model.stem \"imagenet\" it is {}, not {}", kImagenetWidth, model.width));
  }
}

void alexnet_keys(const Section<ModelOptions>& model) {
  const auto alexnet = model.part(&ModelOptions::alexnet);
  add_classes(alexnet, &AlexNetOptions::classes);
  alexnet.add("dropout", &AlexNetOptions::dropout, "Share dropped behind each of the first two linear layers")
      .at_least(0)
      .less_than(1);
}

// The key that makes the images larger.
const char* size_key(const DataType& data, const Shape& image) {
  if (data.any_size) return "data.image_size";
  if (data.small) return "data.pad_to";
  return image[0] < kAlexNetLeastSide ? "data.height" : "data.width";
}

// The model itself would name its last pooling, and no key.
void complete_alexnet(Config& config, const Origin& origin) {
  const DataType& data = data_type(config.data);
  if (data.kind != DataKind::images) return;  // refused by its type
  const Shape image = image_sample(config.data);
  if (image[2] != 3) {
    origin.refuse("model.type",
                  fmt::format("\"alexnet\" wants images of 3 channels, and those of data.type \"{}\" have {}",
                              data.name, image[2]));
  }
  if (std::min(image[0], image[1]) >= kAlexNetLeastSide) return;
  origin.refuse(size_key(data, image),
                fmt::format("images of {} x {} are too small for model.type \"alexnet\"; set it to {} or more",
                            image[0], image[1], kAlexNetLeastSide));
}

void layer_list_keys(const Section<ModelOptions>& model) {
  model.add("layers", &ModelOptions::layers, "The network, input first; see below").must_be_given().items(1);
}

void lstm_keys(const Section<ModelOptions>& model) {
  const auto lstm = model.part(&ModelOptions::lstm);
  lstm.add("vocabulary", &LstmLmOptions::vocabulary,
           "Words; 0: as many as the data has. `dgc plan`, which does not open the data, needs a number")
      .at_least(0);
  lstm.add("hidden", &LstmLmOptions::hidden, "Width of each LSTM layer").must_be_given().at_least(1).at_most(kWidest);
  lstm.add("embedding", &LstmLmOptions::embedding, "Width of a word's vector; 0: `hidden`, which `tied` demands")
      .at_least(0)
      .at_most(kWidest);
  lstm.add("layers", &LstmLmOptions::layers, "LSTM layers").at_least(1).at_most(1000);
  lstm.add("dropout", &LstmLmOptions::dropout, "Share dropped after the embedding and after each LSTM layer")
      .at_least(0)
      .less_than(1);
  lstm.add("tied", &LstmLmOptions::tied, "The decoder's matrix is the embedding's: one tensor, counted and sent once");
  lstm.add("init", &LstmLmOptions::init, "Weights start uniform in +-`init`, the decoder's bias at 0")
      .more_than(0)
      .at_most(100);
  lstm.add("rnn_init", &LstmLmOptions::rnn_init,
           "Those of the LSTM layers start in +-`rnn_init` instead; 0: in +-1/sqrt(`hidden`), as PyTorch's nn.LSTM "
           "does; null: in +-`init`")
      .at_least(0)
      .at_most(100);
}

void complete_lstm(Config& config, const Origin& origin) {
  LstmLmOptions& model = config.model.lstm;
  if (model.embedding == 0) model.embedding = model.hidden;
  if (model.tied && model.embedding != model.hidden) {
    origin.refuse("model.embedding",
                  fmt::format("{}, but model.hidden is {}: with model.tied they must be equal; set model.tied to false",
                              model.embedding, model.hidden));
  }
}

void speech_keys(const Section<ModelOptions>& model) {
  const auto net = model.part(&ModelOptions::speech);
  const auto convolutions = net.section("convolutions", &DeepSpeechOptions::convolutions);
  using Convolutions = SpeechConvolutions;
  const auto each = [&](const char* name, std::vector<int64_t> Convolutions::*member, const char* doc) {
    convolutions.add(name, member, doc).items(1).at_least(1).at_most(4096);
  };
  each("channels", &Convolutions::channels, "Of each convolution, first to last; as many as there are convolutions");
  each("kernel_frames", &Convolutions::kernel_frames, "Their sizes in time; odd");
  each("kernel_frequencies", &Convolutions::kernel_frequencies, "Their sizes in frequency, which is not padded");
  each("stride_frames", &Convolutions::stride_frames, "Frames from one window to the next: 2 halves what follows");
  each("stride_frequencies", &Convolutions::stride_frequencies, "Frequencies from one window to the next");
  net.add("cell", &DeepSpeechOptions::cell, "Of the recurrent layers");
  net.add("layers", &DeepSpeechOptions::layers, "Recurrent layers").at_least(1).at_most(1000);
  net.add("hidden", &DeepSpeechOptions::hidden, "Width of each direction of a recurrent layer")
      .at_least(1)
      .at_most(kWidest);
  net.add("bias", &DeepSpeechOptions::bias, "Recurrent layers with biases");
  net.add("bidirectional", &DeepSpeechOptions::bidirectional,
          "The sum of both directions; false: forward alone, with a lookahead convolution behind the last layer");
  net.add("lookahead", &DeepSpeechOptions::lookahead, "Steps that convolution sees, its own counted")
      .at_least(1)
      .at_most(10000);
}

// A convolution's window must fit into what the one before it leaves of the features.
void check_frequencies(const Config& config, const Origin& origin) {
  const SpeechConvolutions& o = config.model.speech.convolutions;
  const SpeechOptions& data = config.data.speech;
  int64_t left = FeatureExtractor(data.features, data.audio.sample_rate).features();
  for (size_t i = 0; i < o.kernel_frequencies.size(); ++i) {
    if (o.kernel_frequencies[i] > left) {
      const bool mel = data.features.kind == FeatureKind::log_mel;
      origin.refuse("model.convolutions.kernel_frequencies",
                    fmt::format("convolution {} spans {} frequencies, and its input has {}; lower it, or raise {}",
                                i + 1, o.kernel_frequencies[i], left,
                                mel ? "data.features.mels" : "data.features.window_ms or data.sample_rate"));
    }
    left = (left - o.kernel_frequencies[i]) / o.stride_frequencies[i] + 1;
  }
}

void complete_speech(Config& config, const Origin& origin) {
  const SpeechConvolutions& o = config.model.speech.convolutions;
  const auto require_length = [&](const char* key, const std::vector<int64_t>& list) {
    if (list.size() == o.channels.size()) return;
    origin.refuse(fmt::format("model.convolutions.{}", key),
                  fmt::format("{}, but model.convolutions.channels has {}: one for each convolution",
                              counted(std::ssize(list), "entry", "entries"), o.channels.size()));
  };
  require_length("kernel_frames", o.kernel_frames);
  require_length("kernel_frequencies", o.kernel_frequencies);
  require_length("stride_frames", o.stride_frames);
  require_length("stride_frequencies", o.stride_frequencies);
  for (const int64_t frames : o.kernel_frames) {
    if (frames % 2 == 0) {
      origin.refuse("model.convolutions.kernel_frames",
                    fmt::format("{} is even; use {} or {}", frames, frames - 1, frames + 1));
    }
  }
  config.model.speech.classes = Alphabet(config.data.speech.alphabet).classes();
  check_frequencies(config, origin);
}

Network make_speech_network(const ModelOptions& o, const Shape& sample) {
  DeepSpeechOptions speech = o.speech;
  speech.frequencies = sample[1];
  return make_deep_speech(speech, sample[0]);
}

Network smoothed(Network network, const ModelOptions& o) {
  network.set_loss("loss", std::make_unique<CrossEntropy>(o.cross_entropy));
  return network;
}

// The names of all parameters, and whatever stands before a dot in them; each once.
std::vector<std::string> freezable_names(const Network& network) {
  std::set<std::string> names;
  for (const ParamSpec& spec : network.params()) {
    for (size_t dot = spec.name.find('.'); dot != std::string::npos; dot = spec.name.find('.', dot + 1)) {
      names.insert(spec.name.substr(0, dot));
    }
    names.insert(spec.name);
  }
  return {names.begin(), names.end()};
}

void freeze(Network& network, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (network.freeze(name) > 0) continue;
    std::vector<std::string> known = freezable_names(network);
    const std::string meant = nearest(name, known);
    if (!meant.empty()) {
      throw_user_error("model.freeze: no parameter is called \"{}\"; did you mean \"{}\"?", name, meant);
    }
    std::erase_if(known, [](const std::string& word) { return word.find('.') != std::string::npos; });
    throw_user_error("model.freeze: no parameter is called \"{}\"; their names begin with {}", name, quoted(known));
  }
  if (!trained_specs(network.params()).empty()) return;
  if (names.empty()) throw_user_error("model.layers: no layer has parameters, so there is nothing to train");
  throw_user_error("model.freeze: no parameter is left to train; leave a name out");
}

}  // namespace

const std::vector<ModelType>& model_types() {
  using Options = ModelOptions;
  static const std::vector<ModelType> all = {
      {"resnet", DataKind::images, resnet_keys, complete_resnet, [](const Options& o) { return o.resnet.classes; },
       [](const Options& o, const Shape& image) { return smoothed(make_resnet(o.resnet, image), o); }},
      {"alexnet", DataKind::images, alexnet_keys, complete_alexnet, [](const Options& o) { return o.alexnet.classes; },
       [](const Options& o, const Shape& image) { return smoothed(make_alexnet(o.alexnet, image), o); }},
      {"layers", DataKind::images, layer_list_keys, complete_nothing, nullptr,
       [](const Options& o, const Shape& image) { return smoothed(make_layer_list(o.layers, image), o); }},
      {"lstm_lm", DataKind::text, lstm_keys, complete_lstm, nullptr,
       [](const Options& o, const Shape& sample) { return make_lstm_lm(o.lstm, sample[0]); }},
      {"deep_speech", DataKind::speech, speech_keys, complete_speech, nullptr, make_speech_network}};
  return all;
}

const ModelType& model_type(const ModelOptions& model) { return row_named(model_types(), model.type); }

void add_model_keys(Keys& keys) {
  auto model = Section<Config>(keys).section("model", &Config::model);
  model.select("type", &ModelOptions::type, names_of(model_types()),
               "`resnet`, `alexnet` (grouped convolutions), your own list of `layers`, `lstm_lm`: a word model of "
               "embedding, LSTM layers and decoder, or `deep_speech`: characters from sound, by convolutions, "
               "recurrent layers and CTC");
  model
      .add("init_from", &ModelOptions::init_from,
           "Safetensors file to start from, by PyTorch's names: a checkpoint's `weights.safetensors`, or one made of a "
           "`.pth` (docs/fine_tuning.md); BatchNorm statistics come too. Read when a run starts, not when it is "
           "resumed. Default: random weights")
      .is_path()
      .free_on_resume();
  model
      .add("freeze", &ModelOptions::freeze,
           "Parameters that stay as they are, bit for bit, and are not sent: full names, or what stands before a dot "
           "in them (`layer1`). Statistics of a frozen BatchNorm go on moving, as in PyTorch with "
           "`requires_grad=False`")
      .matches(".+");
  model.only(names_of(model_types(), [](const ModelType& type) { return type.reads == DataKind::images; }))
      .part(&ModelOptions::cross_entropy)
      .add("label_smoothing", &CrossEntropyOptions::label_smoothing,
           "Share of each label that is spread evenly over all classes in training; evaluations have none")
      .at_least(0)
      .less_than(1);
  for (const ModelType& type : model_types()) type.add_keys(model.only({type.name}));
}

Network make_network(const ModelOptions& model, const Shape& sample) {
  Network network = model_type(model).make(model, sample);
  freeze(network, model.freeze);
  return network;
}

}  // namespace dgc
