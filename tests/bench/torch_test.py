#!/usr/bin/python3
"""The programs in PyTorch that dgc is compared with: each takes a step on the processor and prints its line. On a GPU they
are run by scripts/gpu_check alone, where a mistake in them costs its time."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
STEP = ["--threads", "1", "--steps", "1", "--warmup", "0"]
TRAINING = [*STEP, "--repeats", "1"]


def line_of(program, *options):
    """The line of JSON that a program of bench/ prints at its end."""
    done = subprocess.run([sys.executable, BENCH / program, *map(str, options)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{program} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


class Yardsticks(unittest.TestCase):
    def test_resnet(self):
        line = line_of("torch_resnet.py", *TRAINING, "--batch", 2)
        self.assertGreater(line["samples_per_s"], 0)

    def test_lstm(self):
        line = line_of("torch_lstm.py", *TRAINING, "--vocabulary", 50, "--hidden", 8)
        self.assertGreater(line["samples_per_s"], 0)

    def test_deep_speech(self):
        with tempfile.TemporaryDirectory() as folder:
            manifest = pathlib.Path(folder) / "train.jsonl"
            manifest.write_text("".join(json.dumps({"duration": 0.8 + i / 10, "text": "AB C"}) + "\n" for i in range(8)))
            line = line_of("torch_deep_speech.py", *TRAINING, "--manifest", manifest, "--hidden", 8, "--layers", 1,
                           "--channels", 2, "--batch", 2)
        self.assertGreater(line["samples_per_s"], 0)

    def test_dgc_step(self):
        for selection in ("topk", "sampled"):
            line = line_of("torch_dgc_step.py", *STEP, "--selection", selection)
            self.assertEqual(line["parameters"], 25_557_032)
            self.assertGreater(line["gb_per_s"], 0)


if __name__ == "__main__":
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(0)
    unittest.main(verbosity=2)
