#!/usr/bin/env python3
"""A short training of every config, on synthetic data of its data set's shape, and of one config in every precision.

    scripts/short_runs.py PROGRAM FOLDER [--device cuda:0]

Prints one line per run, "ok" or "FAILED"; a run's output is in FOLDER. Exit code 1 when one failed.
"""

import argparse
import json
import pathlib
import subprocess
import sys

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
SHAPES = {"cifar10": (32, 32, 3, 10), "mnist": (32, 32, 1, 10), "fashion_mnist": (32, 32, 1, 10),
          "image_folder": (224, 224, 3, 1000)}
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")


def synthetic(data):
    if data["type"] not in SHAPES:
        return []
    height, width, channels, classes = SHAPES[data["type"]]
    return ["--set", "data=" + json.dumps({"type": "synthetic", "height": height, "width": width, "channels": channels,
                                           "classes": classes, "train_samples": 512, "test_samples": 64})]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()

    runs = [(path, []) for path in sorted(CONFIGS.rglob("*.json"))]
    runs += [(CONFIGS / "quickstart.json", ["--set", f"precision={precision}"]) for precision in PRECISIONS]
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for number, (path, overrides) in enumerate(runs):
        config = json.loads(path.read_text())
        name = f"{number:02}-{path.stem}"
        batch = min(config["training"]["batch_per_worker"], 16)
        command = [options.program, "train", path, *synthetic(config["data"]), *overrides, "--set", f"device={options.device}",
                   "--set", "training.max_steps=6", "--set", f"training.batch_per_worker={batch}",
                   "--out", options.folder / name]
        with open(options.folder / f"{name}.log", "w") as log:
            code = subprocess.run(list(map(str, command)), stdout=log, stderr=subprocess.STDOUT).returncode
        print("ok     " if code == 0 else "FAILED ", path.relative_to(CONFIGS), *overrides[1:], flush=True)
        failed += code != 0
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
