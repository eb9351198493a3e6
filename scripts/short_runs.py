#!/usr/bin/env python3
"""A short training of every config, on synthetic data of its data set's shape, and of one config in every precision; and
one with exchange.overlap in many buckets, which must end in the weights that it has without.

    scripts/short_runs.py PROGRAM FOLDER [--device cuda:0] [--seconds 60] [--jobs 4]

Prints one line per run, "ok" or "FAILED" and why; below FAILED the end of its output, which is in FOLDER. Exit code 1
when one failed.
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
SHAPES = {"cifar10": (32, 32, 3, 10), "mnist": (32, 32, 1, 10), "fashion_mnist": (32, 32, 1, 10),
          "image_folder": (224, 224, 3, 1000)}
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
# Of these, fp16 skips its first steps. Enough steps for recorded ones to be replayed, after a warm-up in four phases.
OVERLAPPED = ("fp32", "fp16")
OVERLAP_STEPS = 40


def synthetic(data):
    if data["type"] not in SHAPES:
        return []
    height, width, channels, classes = SHAPES[data["type"]]
    return ["--set", "data=" + json.dumps({"type": "synthetic", "height": height, "width": width, "channels": channels,
                                           "classes": classes, "train_samples": 512, "test_samples": 64})]


def command(program, path, overrides, device, folder, steps=6):
    config = json.loads(path.read_text())
    batch = min(config["training"]["batch_per_worker"], 16)
    return [program, "train", path, *synthetic(config["data"]), *overrides, "--set", f"device={device}",
            "--set", f"training.max_steps={steps}", "--set", f"training.batch_per_worker={batch}", "--out", folder]


def run(command, folder, seconds):
    """Why it failed, or nothing."""
    log = folder.with_suffix(".log")
    try:
        with open(log, "w") as file:
            code = subprocess.run(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT, timeout=seconds).returncode
        why = f"exit code {code}" if code else ""
    except (subprocess.TimeoutExpired, OSError) as error:
        why = str(error) if isinstance(error, OSError) else f"not done after {seconds} s"
    return f"{why}\n" + "".join(log.read_text(errors="replace").splitlines(True)[-8:]) if why else ""


def with_and_without_overlap(program, precision, device, folder, seconds):
    """Why the two do not end in the same weights, or nothing."""
    ends = {}
    for overlap in ("off", "on"):
        own = folder.with_name(f"{folder.name}-{overlap}")
        overrides = [f"exchange.overlap={overlap}", f"precision={precision}", "exchange.bucket_mb=0.02",
                     "exchange.transport=sparse", "training.epochs=5"]
        overrides = [word for override in overrides for word in ("--set", override)]
        why = run(command(program, CONFIGS / "quickstart.json", overrides, device, own, OVERLAP_STEPS), own, seconds)
        if why:
            return f"overlap {overlap}: {why}"
        ends[overlap] = json.loads((own / "metrics.jsonl").read_text().splitlines()[-1])
        shutil.rmtree(own)
    if ends["on"].get("hidden_share") is None:
        return "nothing has overlapped"
    same = ends["on"]["weights_xxh64"] == ends["off"]["weights_xxh64"]
    return "" if same else f"weights {ends['off']['weights_xxh64']} without, {ends['on']['weights_xxh64']} with overlap"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=60, help="that a run may take")
    parser.add_argument("--jobs", type=int, default=4, help="runs at a time")
    options = parser.parse_args()

    runs = [(path, []) for path in sorted(CONFIGS.rglob("*.json"))]
    runs += [(CONFIGS / "quickstart.json", ["--set", f"precision={precision}"]) for precision in PRECISIONS]
    options.folder.mkdir(parents=True, exist_ok=True)

    def one(numbered):
        number, (path, overrides) = numbered
        folder = options.folder / f"{number:02}-{path.stem}"
        why = run(command(options.program, path, overrides, options.device, folder), folder, options.seconds)
        shutil.rmtree(folder, ignore_errors=True)  # checkpoints: gigabytes in all
        return why

    def pair(precision):
        folder = options.folder / f"overlap-{precision}"
        return with_and_without_overlap(options.program, precision, options.device, folder, options.seconds)

    failed = 0

    def tell(why, *what):
        nonlocal failed
        print("FAILED " if why else "ok     ", *what, why, flush=True)
        failed += bool(why)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pairs = pool.map(pair, OVERLAPPED)
        for (path, overrides), why in zip(runs, pool.map(one, enumerate(runs))):
            tell(why, path.relative_to(CONFIGS), *overrides[1:])
        for precision, why in zip(OVERLAPPED, pairs):
            tell(why, "the same weights with exchange.overlap and without,", precision)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
