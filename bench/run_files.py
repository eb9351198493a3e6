"""What the programs in bench/ know of a run directory."""

import array
import json
import pathlib
import struct

import program


def checkpoints(run):
    """Finished ones, oldest first: RUN/checkpoints/step-000001200/."""
    return sorted(pathlib.Path(run, "checkpoints").glob("step-*"))


def step_of(checkpoint):
    return int(checkpoint.name.partition("-")[2])


def train(dgc, config, out, sets, *more):
    program.output_of([dgc, "train", config, "--out", out, *program.settings(sets), *more])


def rows_in(file):
    """Of a file with a JSON object in each line, to which somebody may be writing the last. No file: no rows."""
    path = pathlib.Path(file)
    *whole, _ = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    return [json.loads(line) for line in whole]


def rows_of(run, kind=None):
    """Of metrics.jsonl, those of one kind or all."""
    return [row for row in rows_in(pathlib.Path(run, "metrics.jsonl")) if kind in (None, row["kind"])]


def final_hash(run):
    """weights_xxh64 of the last row of metrics.jsonl that has one."""
    found = [row["weights_xxh64"] for row in rows_of(run) if "weights_xxh64" in row]
    return found[-1] if found else None


def kept(numel, sparsity):
    """As kept_elements in src/optim/dgc/layout.cpp."""
    return max(1, int((1 - sparsity) * numel + 0.5))


def sent_entries(worker_file):
    """Of a worker's file in a checkpoint, by tensor of two or more dimensions: its elements, and which of them have a v
    of zero. An entry that the checkpoint's last step has sent leaves v at exactly zero; elements whose gradients were
    all zero look the same."""
    data = worker_file.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8:start]).items():
        if not name.startswith("v.") or len(entry["shape"]) < 2:
            continue
        begin, end = entry["data_offsets"]
        values = array.array("f", data[start + begin:start + end])
        found[name.removeprefix("v.")] = (len(values), {at for at, value in enumerate(values) if value == 0})
    return found


def shows_what_was_sent(tensor, workers, sparsity):
    """Whether the zeros of each worker's v are as many as it sends of the tensor: sent_by_workers()[...][tensor]."""
    return all(len(zeros) == kept(numel, sparsity) for numel, zeros in (worker[tensor] for worker in workers))


def sent_by_workers(checkpoint):
    return [sent_entries(file) for file in sorted(checkpoint.glob("worker-*.safetensors"))]
