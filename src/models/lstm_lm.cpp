#include "models/lstm_lm.h"

#include "layers/decoder.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/rnn.h"

namespace dgc {

Network make_lstm_lm(const LstmLmOptions& options, int64_t streams) {
  if (options.vocabulary == 0) {
    throw_user_error("model.vocabulary: only training looks at the data; set it to the number of words");
  }
  DGC_CHECK(streams > 0, "a language model without text");
  Network net({streams}, Network::Input::tokens);
  const auto range = static_cast<float>(options.init);
  const Init init{Init::Kind::uniform, range};
  const auto dropout = [&](const std::string& name) {
    if (options.dropout != 0) net.append(name, std::make_unique<Dropout>(DropoutOptions{options.dropout}, name));
  };
  net.append("encoder", std::make_unique<Embedding>(EmbeddingOptions{options.vocabulary, options.embedding, init}));
  dropout("encoder.drop");
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const RnnOptions rnn{.cell = RnnCell::lstm,
                         .in = layer == 0 ? options.embedding : options.hidden,
                         .hidden = options.hidden,
                         .suffix = "_l" + std::to_string(layer),
                         .init = static_cast<float>(options.rnn_init.value_or(options.init)),
                         .carries_state = true};
    net.append("rnn", std::make_unique<Rnn>(rnn));
    dropout("rnn.drop" + rnn.suffix);
  }
  const std::vector<Network::Tie> ties = {{"weight", "encoder.weight"}};
  net.set_loss("decoder", std::make_unique<Decoder>(DecoderOptions{options.hidden, options.vocabulary, init}),
               options.tied ? ties : std::vector<Network::Tie>());
  return net;
}

}  // namespace dgc
