#!/usr/bin/python3
"""PyTorch's speed in training the CIFAR ResNet-20: the yardstick of `dgc bench train`. Prints one JSON line.

    /usr/bin/python3 bench/torch_resnet20.py --threads 2 --batch 128

Synthetic images in host memory, channels_last, SGD with momentum, Nesterov and weight decay. samples_per_s is the median
of --repeats stretches of --steps steps each, after --warmup steps.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "reference"))
import models  # noqa: E402

BATCHES = 4  # different ones, in turn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10, help="in a measured stretch")
    parser.add_argument("--repeats", type=int, default=5, help="measured stretches")
    parser.add_argument("--warmup", type=int, default=5, help="steps before the first stretch")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model (PyTorch 2)")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = models.CifarResNet(20, 10).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    images = [torch.randn(options.batch, 3, 32, 32).to(memory_format=torch.channels_last) for _ in range(BATCHES)]
    labels = [torch.randint(10, (options.batch,)) for _ in range(BATCHES)]
    forward = torch.compile(model) if options.compile else model

    def train(steps):
        for step in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(forward(images[step % BATCHES]), labels[step % BATCHES])
            loss.backward()
            optimizer.step()
        return loss.item()

    train(options.warmup)
    speeds = []
    for _ in range(options.repeats):
        start = time.perf_counter()
        train(options.steps)
        speeds.append(options.steps * options.batch / (time.perf_counter() - start))
    print(json.dumps({"program": "torch_resnet20", "torch": torch.__version__, "compile": options.compile,
                      "threads": options.threads, "batch": options.batch,
                      "samples_per_s": round(statistics.median(speeds), 1),
                      "lowest": round(min(speeds), 1), "highest": round(max(speeds), 1)}))


if __name__ == "__main__":
    main()
