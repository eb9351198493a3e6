#!/usr/bin/python3
"""Loads a checkpoint of ours into the same ResNet in PyTorch and compares logits.

    load_checkpoint.py CHECKPOINT/weights.safetensors BATCH.safetensors

BATCH holds `images` [n, height, width, 3] and the `logits` [n, classes] that dgc computed for them in evaluation. Exit
code 0: PyTorch's logits agree to 1e-4; 1: they do not; 77: there is no PyTorch here.
"""

import re
import sys

try:
    import torch
except ImportError:
    sys.exit(77)

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


def main():
    state = safetensors_io.load(sys.argv[1])
    batch = safetensors_io.load(sys.argv[2])
    model = model_for(state)
    model.load_state_dict(state)  # refuses a missing name, an unknown one, or another shape
    with torch.no_grad():
        logits = model.eval()(batch["images"].permute(0, 3, 1, 2))
    apart = float((logits - batch["logits"]).norm() / batch["logits"].norm())
    print(f"{len(logits)} images: logits differ by {apart:.1e} (relative)")
    return 0 if apart < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
