#!/usr/bin/python3
"""Loads a checkpoint of ours into the same ResNet or language model in PyTorch and compares logits.

    load_checkpoint.py CHECKPOINT/weights.safetensors BATCH.safetensors

BATCH holds `images` [n, height, width, 3], or `tokens` [steps, streams] to be read from a state of zero, and the `logits`
[n, classes] or [steps x streams, words] that dgc computed for them in evaluation. Exit
code 0: PyTorch's logits agree to 1e-4; 1: they do not; 77: there is no PyTorch here.
"""

import re
import sys

try:
    import torch
except ImportError:
    sys.exit(77)

import language
import models
import safetensors_io

TOLERANCE = 1e-4


def model_for(state):
    """A CIFAR ResNet if there are three stages, else ResNet-18. strict loading finds out whether that was right."""
    classes = state["fc.bias"].numel()
    blocks = {(int(m[1]), int(m[2])) for m in map(re.compile(r"layer(\d+)\.(\d+)\.").match, state) if m}
    if max(stage for stage, _ in blocks) == 3:
        return models.CifarResNet(2 * len(blocks) + 2, classes)
    return models.ResNet18(classes)


def language_model_for(state):
    vocabulary, embedding = state["encoder.weight"].shape
    layers = sum(name.startswith("rnn.weight_ih_l") for name in state)
    tied = torch.equal(state["encoder.weight"], state["decoder.weight"])
    return language.LstmLm(vocabulary, embedding, state["rnn.weight_hh_l0"].shape[1], layers, tied)


def read_text(model, tokens):
    zeros = torch.zeros(model.rnn.num_layers, tokens.shape[1], model.rnn.hidden_size)
    return model.eval()(tokens.long(), (zeros, zeros))[0].flatten(0, 1)


def main():
    state = safetensors_io.load(sys.argv[1])
    batch = safetensors_io.load(sys.argv[2])
    model = language_model_for(state) if "tokens" in batch else model_for(state)
    model.load_state_dict(state)  # refuses a missing name, an unknown one, or another shape
    with torch.no_grad():
        if "tokens" in batch:
            logits = read_text(model, batch["tokens"])
        else:
            logits = model.eval()(batch["images"].permute(0, 3, 1, 2))
    apart = float((logits - batch["logits"]).norm() / batch["logits"].norm())
    print(f"{len(logits)} rows: logits differ by {apart:.1e} (relative)")
    return 0 if apart < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
