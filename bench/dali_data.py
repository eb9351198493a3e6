#!/usr/bin/python3
"""NVIDIA DALI's speed in making batches of images on the CPU: a yardstick of `dgc bench data`. Prints one JSON line.

    bench/photos --out photos
    python3 bench/dali_data.py photos --seconds 10

Needs DALI (`pip install nvidia-dali-cuda130`, in a virtual environment), and no GPU. --threads read PATH/train, decode
a random box of each image, resize it to 224 x 224 with a triangle filter, mirror every second one and normalise.
"""

import nvidia.dali
from nvidia.dali import fn, pipeline_def, types

import program
import speed_of_batches


@pipeline_def
def training_images(path):
    files, labels = fn.readers.file(file_root=f"{path}/train", random_shuffle=True)
    images = fn.decoders.image_random_crop(files, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
                                           random_aspect_ratio=[3 / 4, 4 / 3])
    images = fn.resize(images, resize_x=224, resize_y=224, interp_type=types.INTERP_TRIANGULAR)
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="HWC",
                                      mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
    return images, labels


def main():
    options = speed_of_batches.options_of(__doc__, "threads")
    batches = training_images(str(options.path), batch_size=options.batch, num_threads=options.threads, device_id=None)
    batches.build()
    for _ in range(2):
        batches.run()
    speed_of_batches.measure(batches.run, options, bench="dali_data", dali=nvidia.dali.__version__,
                             threads=options.threads)


if __name__ == "__main__":
    program.start(main)
