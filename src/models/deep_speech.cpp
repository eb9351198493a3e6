#include "models/deep_speech.h"

#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/ctc_loss.h"
#include "layers/linear.h"
#include "layers/lookahead.h"
#include "layers/rnn.h"
#include "layers/sequence_layout.h"
#include "layers/sequence_norm.h"
#include "layers/sum.h"

namespace dgc {
namespace {

constexpr int64_t kMostFramesPerStep = int64_t{1} << 20;  // some hours of speech, and far from where int64_t ends

class Builder {
 public:
  Builder(const DeepSpeechOptions& options, int64_t streams)
      : options_(options), net_({streams, options.frequencies}) {}

  Network build() {
    net_.append("frames", std::make_unique<FramesToImage>(frames_per_step_));
    for (size_t i = 0; i < options_.convolutions.channels.size(); ++i) {
      convolution("conv" + std::to_string(i + 1), i);
    }
    net_.append("steps", std::make_unique<ImageToFrames>());
    for (int64_t layer = 0; layer < options_.layers; ++layer) {
      const std::string name = "rnns." + std::to_string(layer);
      if (layer > 0) normalise(name + ".norm", SequenceOrder::steps_first);
      if (options_.bidirectional) {
        both_directions(name);
      } else {
        recurrent(name + ".rnn", net_.output(), "_l0");
      }
    }
    if (!options_.bidirectional) {
      // Unlike the norms behind all other recurrent layers, it reads behind a stream's end.
      net_.append("mask", std::make_unique<SequenceMask>(steps()));
      net_.append("lookahead", std::make_unique<Lookahead>(options_.hidden, options_.lookahead));
      clip("lookahead.clip");
    }
    normalise("fc.norm", SequenceOrder::steps_first);
    net_.append("fc", std::make_unique<Linear>(LinearOptions{options_.hidden, options_.classes, false}));
    net_.set_loss("ctc", std::make_unique<CtcLoss>(CtcLossOptions{options_.classes, frames_per_step_}));
    return std::move(net_);
  }

 private:
  SequenceOptions steps() const { return {frames_per_step_, SequenceOrder::steps_first}; }
  int64_t last_size() const {
    const Shape x = net_.shape(net_.output());
    return x[x.rank() - 1];
  }

  void clip(const std::string& name) { net_.append(name, std::make_unique<ActivationLayer>(Activation::clipped_relu)); }
  void normalise(const std::string& name, SequenceOrder order) {
    const SequenceNormOptions options{.channels = last_size(), .sequences = {frames_per_step_, order}};
    net_.append(name, std::make_unique<SequenceNorm>(options));
  }

  void convolution(const std::string& name, size_t i) {
    const SpeechConvolutions& c = options_.convolutions;
    const int64_t frames = c.kernel_frames.at(i), stride = c.stride_frames.at(i);
    const Conv2dOptions options{.in = last_size(),
                                .out = c.channels[i],
                                .kernel = {frames, c.kernel_frequencies.at(i)},
                                .stride = {stride, c.stride_frequencies.at(i)},
                                .pad = {frames / 2, 0}};
    net_.append(name, std::make_unique<Conv2d>(options));
    if (stride > kMostFramesPerStep / frames_per_step_) {
      throw_user_error("model.convolutions.stride_frames: together they make one step of more than {} frames",
                       kMostFramesPerStep);
    }
    frames_per_step_ *= stride;
    normalise(name + ".norm", SequenceOrder::streams_first);
    clip(name + ".clip");
  }

  int recurrent(const std::string& name, int input, const std::string& suffix) {
    const Shape x = net_.shape(input);
    const RnnOptions options{.cell = options_.cell,
                             .in = x[x.rank() - 1],
                             .hidden = options_.hidden,
                             .biases = options_.bias,
                             .suffix = suffix};
    return net_.add(name, std::make_unique<Rnn>(options), {input});
  }

  void both_directions(const std::string& name) {
    const int x = net_.output();
    const int forward = recurrent(name + ".rnn", x, "_l0");
    const int turned = net_.add(name + ".turn", std::make_unique<SequenceReverse>(steps()), {x});
    recurrent(name + ".rnn", turned, "_l0_reverse");
    const int backward = net_.append(name + ".turn_back", std::make_unique<SequenceReverse>(steps()));
    net_.add(name + ".sum", std::make_unique<SumLayer>(), {forward, backward});
  }

  const DeepSpeechOptions& options_;
  Network net_;
  int64_t frames_per_step_ = 1;
};

}  // namespace

Network make_deep_speech(const DeepSpeechOptions& options, int64_t streams) {
  DGC_CHECK(streams > 0, "a speech model without utterances");
  return Builder(options, streams).build();
}

}  // namespace dgc
