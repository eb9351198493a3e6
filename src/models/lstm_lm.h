#pragma once

#include <optional>

#include "models/network.h"

namespace dgc {

struct LstmLmOptions {
  int64_t vocabulary = 0;  // words; 0: not known before the data have been seen
  int64_t embedding = 0, hidden = 0, layers = 2;
  double dropout = 0;                // after the embedding and after every LSTM layer
  bool tied = true;                  // the decoder's weight is the embedding's
  double init = 0.1;                 // parameters start uniform in +-init, the decoder's bias at 0
  std::optional<double> rnn_init{};  // init of the LSTM layers' parameters; unset: as init; 0: +-1/sqrt(hidden)
  bool operator==(const LstmLmOptions&) const = default;
};

// The word model of Zaremba, Sutskever, Vinyals, "Recurrent neural network regularization" (2014), with tied embeddings
// (Press, Wolf 2017): embedding, LSTM layers, decoder. Parameters have the names of a PyTorch module with an
// nn.Embedding `encoder`, an nn.LSTM `rnn` and an nn.Linear `decoder`; tied, encoder.weight stands for decoder.weight.
//
// The input is tokens [steps, streams], the output what the decoder gets, [steps, streams, hidden]; its loss takes the
// token that follows each. streams: number of texts read side by side, which does not change the parameters. Throws
// UserError where sizes do not fit, or the vocabulary is not known.
Network make_lstm_lm(const LstmLmOptions&, int64_t streams);

}  // namespace dgc
