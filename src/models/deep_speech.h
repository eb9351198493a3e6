#pragma once

#include <vector>

#include "models/network.h"

namespace dgc {

// Convolutions over time and frequency: of each, first to last; all lists are of one length. Time is padded by half a
// kernel, so that a stream's steps are its frames divided by the strides, rounded up; frequencies are not padded.
struct SpeechConvolutions {
  std::vector<int64_t> channels = {32, 32};
  std::vector<int64_t> kernel_frames = {11, 11}, kernel_frequencies = {41, 21};  // frames are odd
  std::vector<int64_t> stride_frames = {2, 1}, stride_frequencies = {2, 2};
  bool operator==(const SpeechConvolutions&) const = default;
};

struct DeepSpeechOptions {
  int64_t frequencies = 161;  // of a frame: those of 20 ms at 16 kHz
  int64_t classes = 29;       // characters and, as class 0, CTC's blank
  SpeechConvolutions convolutions = {};
  RnnCell cell = RnnCell::gru;
  int64_t layers = 7, hidden = 1200;
  bool bias = false;          // of the recurrent layers
  bool bidirectional = true;  // the sum of both directions
  int64_t lookahead = 20;     // steps, where there is one direction
  bool operator==(const DeepSpeechOptions&) const = default;
};

// Deep Speech 2 (Amodei et al. 2016) in the form that the DGC paper trained: convolutions, each with sequence-wise
// batch normalisation and hardtanh(0, 20), recurrent layers with the same normalisation between them, a linear layer to
// characters without a bias behind one more, CTC. In one direction, a lookahead convolution follows the last recurrent
// layer.
//
// The input is frames [steps, streams, frequencies], the output logits [steps', streams, classes]; RunContext::lengths
// has each stream's frames. streams: utterances side by side; how many does not change the parameters. Throws UserError
// where sizes do not fit.
Network make_deep_speech(const DeepSpeechOptions&, int64_t streams);

}  // namespace dgc
