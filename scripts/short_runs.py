#!/usr/bin/env python3
"""A short training of every config, on synthetic data of its data set's shape, and of one config in every precision; and
pairs of trainings that must end in the same weights: with exchange.overlap in many buckets and without, workers at once
and one after another, one rank alone and through NCCL, and two ranks by mpirun, where that is installed.

    scripts/short_runs.py PROGRAM FOLDER [--device cuda:0] [--seconds 60] [--jobs 4] [--only NAME...]

Prints one line per run, "ok" or "FAILED" and why; below FAILED the end of its output, which is in FOLDER. Exit code 1
when one failed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from program import start  # noqa: E402
from tiny_data import write_sound  # noqa: E402

CONFIGS = ROOT / "configs"
SHAPES = {"cifar10": (32, 32, 3), "mnist": (32, 32, 1), "fashion_mnist": (32, 32, 1), "image_folder": (224, 224, 3)}
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
PAIR_STEPS = 40  # enough for recorded ones to be replayed, after a warm-up in four phases
running = set()  # processes


def write_corpus(folder, words):
    """Sentences of so many different words, of which one is the unknown and one the end of a sentence."""
    names = ["<unk>"] + [f"word{i}" for i in range(words - 2)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 4 * words + 40000), ("valid", 4000), ("test", 4000)):
        lines = (" ".join(names[i % len(names)] for i in range(at, at + 20)) for at in range(0, count, 20))
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return {"type": "text", **{name: str(folder / f"{name}.txt") for name in ("train", "valid", "test")}}


def write_recordings(folder, rate):
    """Noise of one to two seconds that is said to be words."""
    folder.mkdir(parents=True, exist_ok=True)
    random_bytes = random.Random(1).randbytes
    for name, count in (("train", 96), ("test", 16)):
        rows = []
        for i in range(count):
            write_sound(folder / f"{name}{i}.wav", rate, random_bytes(2 * rate * (count + i) // count))
            rows.append(json.dumps({"path": f"{name}{i}.wav", "text": "NOISE"}))
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    return {"type": "speech_manifest", "path": str(folder), "sample_rate": rate}


def synthetic(config, folder):
    """Overrides that put made up data in the place of a config's own, which this machine need not have."""
    data = config["data"]
    if data["type"] == "text":
        instead = {**data, **write_corpus(folder, config["model"]["vocabulary"])}
    elif data["type"] in ("an4", "librispeech", "speech_manifest"):
        rate = data.get("sample_rate", 16000)
        instead = {"features": data.get("features", {}), **write_recordings(folder, rate)}
    elif data["type"] in SHAPES:
        height, width, channels = SHAPES[data["type"]]
        classes = config["model"].get("classes", 10)  # a set may be cut to some of its own
        instead = {"type": "synthetic", "height": height, "width": width, "channels": channels, "classes": classes,
                   "train_samples": 512, "test_samples": 64}
    elif data["type"] == "synthetic":
        return []
    else:
        raise SystemExit(f"SHAPES does not know the images of data.type \"{data['type']}\"")
    return ["--set", "data=" + json.dumps(instead)]


def command(program, path, overrides, device, folder, steps=6):
    config = json.loads(path.read_text())
    batch = min(config["training"]["batch_per_worker"], 16)
    return [program, "train", path, *synthetic(config, folder.with_name(f"{folder.name}-data")), *overrides, "--set", f"device={device}",
            "--set", f"training.max_steps={steps}", "--set", f"training.batch_per_worker={batch}",
            "--overwrite",  # what is left of a run that was killed
            "--out", folder]


def run(command, folder, seconds, environment=None, ranks=1):
    """Why it failed, or nothing. Several ranks meet by a file."""
    log = folder.with_suffix(".log")
    processes = []
    try:
        with open(log, "w") as file:
            for rank in range(ranks):
                place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
                         "DGC_RENDEZVOUS": f"file://{folder.absolute()}-meet"} if ranks > 1 else {}
                processes.append(subprocess.Popen(list(map(str, command)), stdout=file, stderr=subprocess.STDOUT,
                                                  env=os.environ | (environment or {}) | place))
                running.add(processes[-1])
            end = time.monotonic() + seconds
            codes = [process.wait(max(0, end - time.monotonic())) for process in processes]
        why = next((f"exit code {code}" for code in codes if code), "")
    except (subprocess.TimeoutExpired, OSError) as error:
        why = str(error) if isinstance(error, OSError) else f"not done after {seconds} s"
    finally:
        for process in processes:
            process.kill()
            process.wait()
            running.discard(process)
    return f"{why}\n" + "".join(log.read_text(errors="replace").splitlines(True)[-8:]) if why else ""


class Variant(NamedTuple):
    """One way of a training whose weights must not depend on the way."""
    overrides: tuple
    launcher: tuple = ()
    environment: dict = {}
    device: str = ""  # instead of the one of all other runs
    ranks: int = 1  # processes, without a launcher


class Pair(NamedTuple):
    name: str
    first: Variant
    second: Variant
    shows: str = ""  # what the last row of the second one's metrics must have


def count_gpus(program):
    said = subprocess.run([program, "info"], stdout=subprocess.PIPE, text=True).stdout
    line = next((line for line in said.splitlines() if line.startswith("GPUs")), "")
    return len(re.findall(r"cuda:\d+", line))


def pairs(gpus):
    two = ("workers_per_rank=2",)
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    all_pairs = []
    for precision in ("fp32", "fp16"):  # fp16 skips its first steps
        same = (f"precision={precision}", "exchange.bucket_mb=0.02", "exchange.transport=sparse")
        all_pairs.append(Pair(f"exchange.overlap and without, {precision}", Variant((*same, "exchange.overlap=off")),
                              Variant((*same, "exchange.overlap=on")), "hidden_share"))
    all_pairs.append(Pair("two workers at once and one after another", Variant((*two, "workers_at_once=1")),
                          Variant((*two, "workers_at_once=2"))))
    all_pairs.append(Pair("one rank alone and through NCCL", Variant(two), Variant((*two, "exchange.communicator=nccl"))))
    ways = {"DGC": (), "DGC with overlap": ("exchange.overlap=on", "exchange.bucket_mb=0.02", "exchange.transport=sparse"),
            "split and reduce": ("exchange.algorithm=split_reduce",),
            "dense": ('optimizer={"type": "sgd", "momentum": 0.9}',), "local steps": ("exchange.every_steps=2",)}
    if gpus > 1:  # through NCCL
        for name, way in ways.items():
            all_pairs.append(Pair(f"two workers on one GPU and on two, {name}", Variant((*two, *way)),
                                  Variant(("workers_per_rank=1", *way), device="auto", ranks=2)))
    if shutil.which("mpirun"):  # through NCCL where each rank has a GPU of its own, else through MPI
        all_pairs.append(Pair("one rank of two workers and two ranks of one", Variant(two),
                              Variant(("workers_per_rank=1",), ("mpirun", "-n", "2", "--oversubscribe"), as_root, "auto")))
    return all_pairs


def differ(program, pair, device, folder, seconds):
    """Why the two do not end in the same weights, or nothing."""
    ends = []
    for number, variant in enumerate((pair.first, pair.second), 1):
        own = folder.with_name(f"{folder.name}-{number}")
        overrides = [word for override in (*variant.overrides, "training.epochs=5") for word in ("--set", override)]
        words = command(program, CONFIGS / "quickstart.json", overrides, variant.device or device, own, PAIR_STEPS)
        why = run([*variant.launcher, *words], own, seconds, variant.environment, variant.ranks)
        if why:
            return f"{' '.join((*variant.launcher, *variant.overrides))}: {why}"
        ends.append(json.loads((own / "metrics.jsonl").read_text().splitlines()[-1]))
        shutil.rmtree(own)
    if pair.shows and ends[1].get(pair.shows) is None:
        return f"no {pair.shows}"
    first, second = (end["weights_xxh64"] for end in ends)
    return "" if first == second else f"weights {first} of the first, {second} of the second"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM", help="dgc")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="for the runs, and what they print")
    parser.add_argument("--device", default="cuda:0", help="of all runs (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="that a run may take (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="runs at a time (default: %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="short trainings of these configs, and nothing else")
    options = parser.parse_args()
    if shutil.which(options.program) is None:
        parser.error(f"there is no program {options.program}")
    if options.seconds <= 0 or options.jobs < 1:
        parser.error("--seconds and --jobs: give numbers above 0")
    paths = [path for path in sorted(CONFIGS.rglob("*.json")) if "model" in json.loads(path.read_text())]  # no studies
    unknown = set(options.only or []) - {path.stem for path in paths}
    if unknown:
        parser.error(f"--only: there is no config {', '.join(sorted(unknown))}")

    runs = [(path, []) for path in paths if not options.only or path.stem in options.only]
    if not options.only:
        runs += [(CONFIGS / "quickstart.json", ["--set", f"precision={precision}"]) for precision in PRECISIONS]
    options.folder.mkdir(parents=True, exist_ok=True)

    def one(numbered):
        number, (path, overrides) = numbered
        folder = options.folder / f"{number:02}-{path.stem}"
        why = run(command(options.program, path, overrides, options.device, folder), folder, options.seconds)
        shutil.rmtree(folder, ignore_errors=True)  # checkpoints: gigabytes in all
        return why

    def pair(numbered):
        number, one_pair = numbered
        return differ(options.program, one_pair, options.device, options.folder / f"pair{number}", options.seconds)

    failed = 0

    def tell(why, *what):
        nonlocal failed
        print("FAILED " if why else "ok     ", *what, why, flush=True)
        failed += bool(why)

    all_pairs = [] if options.only else pairs(count_gpus(options.program))
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    try:
        ends = pool.map(pair, enumerate(all_pairs))
        for (path, overrides), why in zip(runs, pool.map(one, enumerate(runs))):
            tell(why, path.relative_to(CONFIGS), *overrides[1:])
        for one_pair, why in zip(all_pairs, ends):
            tell(why, "the same weights:", one_pair.name)
        if not options.only and not shutil.which("mpirun"):
            print("skipped two ranks by mpirun, which is not installed", flush=True)
        if not options.only and not any(one_pair.second.ranks > 1 for one_pair in all_pairs):
            print("skipped two ranks through NCCL, as there is one GPU at most", flush=True)
    finally:  # a signal to this process alone does not reach what it has started, and the rest shall not begin
        for process in list(running):
            process.kill()
        pool.shutdown(cancel_futures=True)
    return int(failed > 0)


if __name__ == "__main__":
    start(main)
