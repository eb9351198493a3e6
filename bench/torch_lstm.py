#!/usr/bin/python3
"""PyTorch's speed in training a language model: the yardstick of `dgc bench train` with an LSTM. Prints one JSON line.

    /usr/bin/python3 bench/torch_lstm.py --threads 2
    python3 bench/torch_lstm.py --device cuda --hidden 1500 --dropout 0.65 --bptt 35

A tied LSTM in float32, random words, truncated back-propagation with carried state, the norm of the gradient clipped,
plain SGD. samples_per_s, in words, is the median of --repeats stretches of --steps steps each, after --warmup steps.
"""

import torch
import torch.nn.functional as F

import program
import torch_speed

language = program.reference("language")
BATCHES = 4  # different ones, in turn


class WithDropout(language.LstmLm):
    """After the embedding and after each LSTM layer, as dgc has it."""

    def __init__(self, options):
        super().__init__(options.vocabulary, options.hidden, options.hidden, options.layers, tied=True)
        self.dropout = options.dropout
        self.rnn.dropout = options.dropout if options.layers > 1 else 0

    def forward(self, tokens, state):
        x = F.dropout(self.encoder(tokens), self.dropout, self.training)
        y, state = self.rnn(x, state)
        return self.decoder(F.dropout(y, self.dropout, self.training)), y, state


def main():
    parser = program.Parser(__doc__)
    parser.add_argument("--vocabulary", type=program.positive, default=10000, help="words")
    parser.add_argument("--hidden", type=program.positive, default=200, help="units of a layer and of the embedding")
    parser.add_argument("--layers", type=program.positive, default=2, help="of LSTM")
    parser.add_argument("--dropout", type=float, default=0, help="share of the units")
    parser.add_argument("--bptt", type=program.positive, default=20, help="words of a stream in a step")
    parser.add_argument("--batch", type=program.positive, default=20, help="streams")
    parser.add_argument("--clip", type=program.above_zero, default=0.25, help="norm of the gradient, at most")
    options, device = torch_speed.begin(parser)

    model = WithDropout(options).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    texts = [torch.randint(options.vocabulary, (options.bptt + 1, options.batch)) for _ in range(BATCHES)]
    zeros = torch.zeros(options.layers, options.batch, options.hidden, device=device)
    state = (zeros, zeros)

    def train(steps):
        nonlocal state
        for step in range(steps):
            words = texts[step % BATCHES].to(device, non_blocking=True)
            state = tuple(s.detach() for s in state)
            optimizer.zero_grad(set_to_none=True)
            logits, _, state = model(words[:-1], state)
            F.cross_entropy(logits.flatten(0, 1), words[1:].flatten()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
            optimizer.step()

    torch_speed.run("torch_lstm", train, options.bptt * options.batch, options, device, vocabulary=options.vocabulary,
                    hidden=options.hidden, layers=options.layers, dropout=options.dropout, bptt=options.bptt,
                    batch=options.batch)


if __name__ == "__main__":
    program.start(main)
