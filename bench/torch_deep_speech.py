#!/usr/bin/python3
"""PyTorch's speed in training Deep Speech: the yardstick of `dgc bench train` with utterances. Prints one JSON line.

    /usr/bin/python3 bench/torch_deep_speech.py --manifest utterances.jsonl --threads 2
    python3 bench/torch_deep_speech.py --manifest utterances.jsonl --device cuda --hidden 800 --layers 7

Convolutions with hardtanh, bidirectional GRU layers without biases whose directions are summed, sequence-wise batch
normalisation, CTC, SGD with Nesterov momentum and clipping, float32. Features are random, but as many frames as the
manifest's durations make at 100 a second, and lie ready in memory; targets are as long as its texts. Batches hold
utterances of about one length, and their recurrent layers see no padding (pack_padded_sequence). samples_per_s, in
utterances, is the median of --repeats stretches of --steps steps, after --warmup steps.
"""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import program
import torch_speed

FREQUENCIES, CLASSES = 161, 29
KERNEL_FRAMES, STRIDE_FRAMES = 11, 2


class Convolution(nn.Module):
    """[batch, in, frequencies, frames]; frames behind an utterance's end are 0, before and after."""

    def __init__(self, channels_in, channels, kernel_frequencies):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, (kernel_frequencies, KERNEL_FRAMES), (2, STRIDE_FRAMES),
                              (0, KERNEL_FRAMES // 2), bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x, frames):
        x = self.conv(x)
        frames = (frames + STRIDE_FRAMES - 1) // STRIDE_FRAMES
        valid = torch.arange(x.shape[3], device=x.device) < frames.to(x.device)[:, None]
        return F.hardtanh(self.norm(x), 0, 20) * valid[:, None, None, :], frames


class SumOfDirections(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.rnn = nn.GRU(inputs, hidden, bias=False, bidirectional=True)

    def forward(self, packed):
        y, _ = self.rnn(packed)
        return y._replace(data=y.data[:, : self.hidden] + y.data[:, self.hidden :])


class DeepSpeech(nn.Module):
    def __init__(self, layers, hidden, channels):
        super().__init__()
        self.convolutions = nn.ModuleList([Convolution(1, channels, 41), Convolution(channels, channels, 21)])
        frequencies = ((FREQUENCIES - 41) // 2 + 1 - 21) // 2 + 1
        self.rnns = nn.ModuleList(
            SumOfDirections(channels * frequencies if i == 0 else hidden, hidden) for i in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers))
        self.fc = nn.Linear(hidden, CLASSES, bias=False)

    def forward(self, x, frames):
        for convolution in self.convolutions:
            x, frames = convolution(x, frames)
        packed = pack_padded_sequence(x.flatten(1, 2).permute(2, 0, 1), frames, enforce_sorted=False)
        for rnn, norm in zip(self.rnns, self.norms):
            packed = rnn(packed)
            packed = packed._replace(data=norm(packed.data))
        logits = self.fc(packed.data)
        return pad_packed_sequence(packed._replace(data=F.log_softmax(logits, 1)))[0], frames


def make_batches(manifest, batch):
    """As many as the manifest fills; each (features, frames, targets, target lengths)."""
    rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    rows.sort(key=lambda row: row["duration"])
    batches = []
    for first in range(0, len(rows) - batch + 1, batch):
        chosen = rows[first : first + batch]
        frames = torch.tensor([int(100 * row["duration"]) for row in chosen])
        features = pad_sequence([torch.randn(int(n), FREQUENCIES) for n in frames], batch_first=True)
        sizes = torch.tensor([len(row["text"]) for row in chosen])
        targets = torch.randint(1, CLASSES, (int(sizes.sum()),))
        batches.append((features.transpose(1, 2).unsqueeze(1).contiguous(), frames, targets, sizes))
    order = torch.randperm(len(batches)).tolist()
    return [batches[i] for i in order]


def main():
    parser = program.Parser(__doc__)
    parser.add_argument("--manifest", type=program.file, required=True, metavar="FILE",
                        help="an object per line, with duration (s) and text")
    parser.add_argument("--layers", type=program.positive, default=3, help="of GRU")
    parser.add_argument("--hidden", type=program.positive, default=256, help="units of a layer in each direction")
    parser.add_argument("--channels", type=program.positive, default=16, help="of each convolution")
    parser.add_argument("--batch", type=program.positive, default=16, help="utterances")
    parser.add_argument("--clip", type=program.above_zero, default=400, help="norm of the gradient, at most")
    options, device = torch_speed.begin(parser)

    model = DeepSpeech(options.layers, options.hidden, options.channels).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, nesterov=True)
    batches = make_batches(options.manifest, options.batch)
    step_number = 0

    def train(steps):
        nonlocal step_number
        for _ in range(steps):
            features, frames, targets, sizes = batches[step_number % len(batches)]
            step_number += 1
            optimizer.zero_grad(set_to_none=True)
            log_probabilities, steps_left = model(features.to(device, non_blocking=True), frames)
            loss = F.ctc_loss(log_probabilities, targets.to(device), steps_left, sizes, reduction="sum")
            (loss / len(frames)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
            optimizer.step()

    torch_speed.run("torch_deep_speech", train, options.batch, options, device, layers=options.layers,
                    hidden=options.hidden, batch=options.batch, parameters=sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    program.start(main)
