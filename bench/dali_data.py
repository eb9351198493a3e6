#!/usr/bin/python3
"""NVIDIA DALI's speed in making batches of images on the CPU: a yardstick of `dgc bench data`. Prints one JSON line.

    bench/photos --out photos
    python3 bench/dali_data.py photos --seconds 10

Needs DALI (`pip install nvidia-dali-cuda130`, in a virtual environment), and no GPU. One thread reads PATH/train, decodes a
random box of each image, resizes it to 224 x 224 with a triangle filter, mirrors every second one and normalises.
"""

import argparse
import json
import resource
import time

import nvidia.dali
from nvidia.dali import fn, pipeline_def, types


@pipeline_def
def training_images(path):
    files, labels = fn.readers.file(file_root=f"{path}/train", random_shuffle=True)
    images = fn.decoders.image_random_crop(files, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
                                           random_aspect_ratio=[3 / 4, 4 / 3])
    images = fn.resize(images, resize_x=224, resize_y=224, interp_type=types.INTERP_TRIANGULAR)
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="HWC",
                                      mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
    return images, labels


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    batches = training_images(options.path, batch_size=options.batch, num_threads=options.threads, device_id=None)
    batches.build()
    for _ in range(2):
        batches.run()
    start, cpu_start, count, seconds = time.monotonic(), processor_seconds(), 0, 0.0
    while seconds < options.seconds:
        batches.run()
        count += options.batch
        seconds = time.monotonic() - start
    cpu_seconds = processor_seconds() - cpu_start
    print(json.dumps({"bench": "dali_data", "dali": nvidia.dali.__version__, "threads": options.threads,
                      "seconds": seconds, "cpu_seconds": cpu_seconds, "samples_per_s": count / seconds,
                      "samples_per_cpu_s": count / cpu_seconds}))


if __name__ == "__main__":
    main()
