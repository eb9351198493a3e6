"""The language model of dgc in PyTorch, and the training that the dump lstm_lm.safetensors records.

Nothing here has a kink, so no inputs need be chosen: float32 stays within 4e-6 of float64 over all 20 steps
(`python3 tests/reference/language.py` prints how far).
"""

import dataclasses

import torch
import torch.nn as nn
import torch.nn.functional as F

import hashed

STEPS = 20
CLIP = 0.1
LEARNING_RATE = 20.0
PERIOD = 11  # of the text: there is something to learn


class LstmLm(nn.Module):
    """Parameters named as dgc names them. Tied, decoder.weight is encoder.weight."""

    def __init__(self, vocabulary, embedding, hidden, layers, tied):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.LSTM(embedding, hidden, layers)
        self.decoder = nn.Linear(hidden, vocabulary)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, tokens, state):
        y, state = self.rnn(self.encoder(tokens), state)
        return self.decoder(y), y, state


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    vocabulary: int
    embedding: int
    hidden: int
    layers: int
    tied: bool
    steps: int  # of time
    streams: int


CASES = (
    Case("tied", vocabulary=37, embedding=12, hidden=12, layers=2, tied=True, steps=7, streams=4),
    Case("untied", vocabulary=50, embedding=9, hidden=17, layers=1, tied=False, steps=5, streams=3),
)


def fresh(case, dtype):
    model = LstmLm(case.vocabulary, case.embedding, case.hidden, case.layers, case.tied)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(hashed.uniform(name, p.shape, 0.4))
    return model.to(dtype)


def text(case):
    """Token t of stream s is number t % PERIOD * streams + s. The last words of the vocabulary never come."""
    words = hashed.labels(case.name + ".text", PERIOD * case.streams, case.vocabulary - 3)
    return words.reshape(PERIOD, case.streams)[torch.arange(STEPS * case.steps + 1) % PERIOD]


def train(case, dtype, after_step):
    """Truncated back-propagation with carried state; after_step(step, y, loss, norm, gradients, model, state)."""
    model, words = fresh(case, dtype), text(case)
    zeros = torch.zeros(case.layers, case.streams, case.hidden, dtype=dtype)
    state = (zeros, zeros)
    for step in range(STEPS):
        first = step * case.steps
        state = tuple(s.detach() for s in state)
        logits, y, state = model(words[first : first + case.steps], state)
        loss = F.cross_entropy(logits.flatten(0, 1), words[first + 1 : first + 1 + case.steps].flatten())
        model.zero_grad()
        loss.backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        with torch.no_grad():
            for p in model.parameters():
                p -= LEARNING_RATE * p.grad
        after_step(step, y.detach(), loss.detach(), norm, gradients, model, state)


def study(case):
    runs = []
    for dtype in (torch.float32, torch.float64):
        seen = []
        train(case, dtype, lambda step, y, loss, norm, g, model, state: seen.append(
            [loss.double(), norm.double(), y.double()] + [p.detach().double().clone() for p in model.parameters()]))
        runs.append(seen)
    worst = max(float((a - b).norm() / b.norm()) for s, t in zip(*runs) for a, b in zip(s, t))
    norms = [float(step[1]) for step in runs[1]]
    losses = [float(step[0]) for step in runs[1]]
    print(f"{case.name}: float32 is off by at most {worst:.1e}; norms {min(norms):.2f} ... {max(norms):.2f}, "
          f"loss {losses[0]:.3f} ... {losses[-1]:.3f}")


if __name__ == "__main__":
    for case in CASES:
        study(case)
