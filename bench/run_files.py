"""What kill_resume and flip_bytes know of a run directory."""

import json
import pathlib


def checkpoints(run):
    """Finished ones, oldest first: RUN/checkpoints/step-000001200/."""
    return sorted(pathlib.Path(run, "checkpoints").glob("step-*"))


def final_hash(run):
    """weights_xxh64 of the last row of metrics.jsonl that has one."""
    found = None
    for line in pathlib.Path(run, "metrics.jsonl").read_text().splitlines():
        found = json.loads(line).get("weights_xxh64", found)
    return found
