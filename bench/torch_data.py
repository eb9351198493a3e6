#!/usr/bin/python3
"""torchvision's speed in making batches of images: the yardstick of `dgc bench data`. Prints one JSON line.

    bench/photos --out photos
    python3 bench/torch_data.py photos --seconds 10

Needs torchvision (`apt install python3-torchvision`). A DataLoader with workers reads PATH/train with Pillow, cuts random
boxes, resizes them to 224 x 224, mirrors every second one and normalises: the defaults of torchvision's transforms.
samples_per_cpu_s counts the processor time of the workers and of this process, which other programs on the same cores change
less than the time that passes.
"""

import argparse
import json
import resource
import time

import torch
import torchvision
from torchvision import transforms


def processor_seconds(pids):
    """Of this process and of the workers."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for pid in pids:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0]) / 1e9  # the worker's main thread, which does all the work
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    torch.set_num_threads(1)
    images = torchvision.datasets.ImageFolder(f"{options.path}/train", transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
    sampler = torch.utils.data.RandomSampler(images, replacement=True, num_samples=10**9)
    loader = torch.utils.data.DataLoader(images, options.batch, sampler=sampler, num_workers=options.workers)
    batches = iter(loader)
    pids = [worker.pid for worker in batches._workers]
    for _ in range(2 * options.workers):
        next(batches)
    start, cpu_start, count, seconds = time.monotonic(), processor_seconds(pids), 0, 0.0
    while seconds < options.seconds:
        count += len(next(batches)[1])
        seconds = time.monotonic() - start
    cpu_seconds = processor_seconds(pids) - cpu_start
    print(json.dumps({"bench": "torch_data", "torchvision": torchvision.__version__, "threads": options.workers,
                      "seconds": seconds, "cpu_seconds": cpu_seconds, "samples_per_s": count / seconds,
                      "samples_per_cpu_s": count / cpu_seconds}))


if __name__ == "__main__":
    main()
