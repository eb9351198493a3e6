#!/usr/bin/python3
"""Loads weights of ours into the modules of docs/pytorch.md, whose code it runs, and compares logits.

    load_checkpoint.py WEIGHTS.safetensors BATCH.safetensors [WEIGHTS BATCH ...]

A BATCH holds the `logits` that dgc computed in evaluation for its `images` [n, height, width, 3], `tokens` [steps, streams],
read from a state of zero, or `frames` [frames, frequencies] of one utterance; with frames, and of a list of layers, there is
RUN/config.json, three folders above the weights. Exit code 0: PyTorch's logits agree to 1e-4; 1: they do not; 77: there is
no PyTorch here.
"""

import json
import pathlib
import re
import sys

try:
    import torch
except ImportError:
    sys.exit(77)

TOLERANCE = 1e-4
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "pytorch.md"


def documented():
    names = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)), names)
    return names


def model_config(path):
    return json.loads(pathlib.Path(path).parents[2].joinpath("config.json").read_text())["model"]


def model_for(page, path, batch):
    weights = page["read_weights"](path)
    if "frames" in batch:
        config = model_config(path)
        return page["DeepSpeech"](config["convolutions"], config["layers"], config["hidden"], len(weights["fc.weight"]),
                                  batch["frames"].shape[1])
    if "tokens" in batch:
        layers = sum(name.startswith("rnn.weight_ih_l") for name in weights)
        return page["LstmLm"](*weights["encoder.weight"].shape, weights["rnn.weight_hh_l0"].shape[1], layers)
    if "fc8.bias" in weights:
        return page["AlexNet"](len(weights["fc8.bias"]), weights["fc6.weight"].shape[1])
    if "0.weight" in weights:
        return page["sequential"](model_config(path)["layers"], weights)
    blocks = sum(name.endswith(".conv1.weight") for name in weights)
    return page["CifarResNet"](2 * blocks + 2, len(weights["fc.bias"]), *weights["conv1.weight"].shape[:2])


def logits_of(model, batch):
    if "frames" in batch:
        return model(batch["frames"])
    if "tokens" in batch:
        return model(batch["tokens"].long())[0].flatten(0, 1)
    return model(batch["images"].permute(0, 3, 1, 2))


def main():
    page, apart = documented(), []
    for path, batch_path in zip(sys.argv[1::2], sys.argv[2::2]):
        batch = page["read_weights"](batch_path)
        model = page["load"](model_for(page, path, batch), path)  # refuses a missing name, an unknown one, or another shape
        with torch.no_grad():
            logits = logits_of(model, batch)
        assert logits.shape == batch["logits"].shape, (logits.shape, batch["logits"].shape)
        apart.append(float((logits - batch["logits"]).norm() / batch["logits"].norm()))
        print(f"{type(model).__name__}, {len(logits)} rows: logits differ by {apart[-1]:.1e} (relative)")
    return 0 if apart and max(apart) < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
