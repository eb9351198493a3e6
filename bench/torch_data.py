#!/usr/bin/python3
"""torchvision's speed in making batches of images: the yardstick of `dgc bench data`. Prints one JSON line.

    bench/photos --out photos
    python3 bench/torch_data.py photos --seconds 10

Needs torchvision (`apt install python3-torchvision`). A DataLoader with --workers reads PATH/train with Pillow, cuts
random boxes, resizes them to 224 x 224, mirrors every second one and normalises: the defaults of torchvision's
transforms. samples_per_cpu_s counts the processor time of the workers and of this process, which other programs on the
same cores change less than the time that passes.
"""

import torch
import torchvision
from torchvision import transforms

import program
import speed_of_batches


def main():
    options = speed_of_batches.options_of(__doc__, "workers")
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
    speed_of_batches.measure(lambda: next(batches), options, pids, bench="torch_data",
                             torchvision=torchvision.__version__, threads=options.workers)


if __name__ == "__main__":
    program.start(main)
