#pragma once

#include <vector>

#include "models/network.h"

namespace dgc {

// Convolutions over time and frequency. Each list has one entry per convolution, first to last. Time is padded by half
// a kernel, so that a stream's steps are its frames divided by the strides, rounded up; frequencies are not padded.
struct SpeechConvolutions {
  std::vector<int64_t> channels = {32, 32};
  std::vector<int64_t> kernel_frames = {11, 11}, kernel_frequencies = {41, 21};  // kernel_frames are odd
  // All stride_frames multiply to 2^20 at most.
  std::vector<int64_t> stride_frames = {2, 1}, stride_frequencies = {2, 2};
  bool operator==(const SpeechConvolutions&) const = default;
};

struct DeepSpeechOptions {
  int64_t frequencies = 161;  // frequencies of a frame: 161 for 20 ms at 16 kHz
  int64_t classes = 29;       // characters and, as class 0, CTC's blank
  SpeechConvolutions convolutions = {};
  RnnCell cell = RnnCell::gru;
  int64_t layers = 7, hidden = 1200;
  bool bias = false;          // whether the recurrent layers have biases
  bool bidirectional = true;  // a recurrent layer gives the sum of both directions
  int64_t lookahead = 20;     // steps of the lookahead convolution, used with one direction
  bool operator==(const DeepSpeechOptions&) const = default;
};

// Deep Speech 2 (Amodei et al. 2016) in the form that the DGC paper trained: convolutions, each with sequence-wise
// batch normalisation and hardtanh(0, 20), recurrent layers with the same normalisation between them and after the
// last, a linear layer to characters without a bias, CTC. With one direction, a lookahead convolution follows the last
// recurrent layer.
//
// The input is frames [steps, streams, frequencies], the output logits [steps', streams, classes]; RunContext::lengths
// has each stream's frames. streams: number of utterances side by side, which does not change the parameters. Throws
// UserError where sizes do not fit.
Network make_deep_speech(const DeepSpeechOptions&, int64_t streams);

}  // namespace dgc
