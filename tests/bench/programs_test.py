#!/usr/bin/python3
"""The programs of bench/ as a user meets them: --help, wrong options, files that are not theirs, and Ctrl-C; and the
modules that they share. Nothing is trained.

    tests/bench/programs_test.py
"""

import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH))
import processes  # noqa: E402
import program  # noqa: E402
import run_files  # noqa: E402
from record import Record  # noqa: E402

PROGRAMS = sorted(path for path in BENCH.iterdir() if path.is_file() and os.access(path, os.X_OK))
FAKE = "/bin/true"  # in the place of dgc
WRONG = [
    ("compare", ["dgc", "--dgc", FAKE, "--rounds", "0"], "--rounds: 0: give a whole number from 1 on"),
    ("compare", ["dgc", "--dgc", "/nowhere/dgc"], "there is no program /nowhere/dgc: scripts/build makes it"),
    ("freeze", ["--dgc", FAKE], "give --out, --against or --facts"),
    ("freeze", ["--dgc", FAKE, "--write", "--out", "new.json"], "--write: give the file with --facts"),
    ("freeze", ["--dgc", FAKE, "--against", "notes.txt"], "notes.txt is no record of freeze"),
    ("freeze", ["--dgc", FAKE, "--out", "nowhere/new.json"], "nowhere/new.json: this file cannot be written"),
    ("gpu_model", ["--set", "ipd=1"], "ipd=1: give NAME=NUMBER, with one of these names: copy_tb_s,"),
    ("gpu_model", ["--counts", "notes.txt"], "there are no counts"),
    ("kill_resume", ["--dgc", FAKE, "--config", "nowhere.json"], "--config: nowhere.json: there is no such file"),
    ("kill_resume", ["--dgc", FAKE, "--config", "notes.txt", "--layouts", "4x1", "3x1"], "all must have as many workers"),
    ("kill_resume", ["--dgc", FAKE, "--config", "notes.txt", "--lives", "0"], "--lives: 0: give a whole number"),
    ("local_steps", ["."], "there is no dense training that has ended"),
    ("overlaps", ["--dgc", FAKE, "--model", "resnet20", "--data", ".", "--out", "notes.txt"],
     "notes.txt is no record of overlaps"),
    ("photos", ["--out", "notes.txt"], "--out: notes.txt: this is there already"),
    ("scale", ["--dgc", "/nowhere/dgc", "models"], "there is no program /nowhere/dgc"),
    ("scale", ["cluster", "--rack", "-1"], "--rack: -1: give a whole number from 0 on"),
    ("scale", ["pictures", "nowhere"], "nowhere: there is no such folder"),
    ("scaled_decoding", ["nowhere.jpg"], "nowhere.jpg: there is no such file"),
    ("sent_again", ["--dgc", FAKE, "--config", "notes.txt", "--at", "30", "20"], "--at: give increasing steps"),
    ("sent_again", ["--dgc", FAKE, "--config", "notes.txt", "--at", "30"], "--at 30: the training ends before step 31"),
    ("slow_links", ["--dgc", FAKE, "--rates", "0Mbps"], "0Mbps: give 100Mbps, 1Gbps or none"),
    ("slow_links", ["--dgc", FAKE, "--out", "notes.txt"], "notes.txt is no record of this benchmark"),
    ("soak", ["--dgc", FAKE, "--out", "new", "--hours", "nan"], "--hours: nan: give a number above 0"),
    ("uneven_ranks", ["--dgc", FAKE, "--ranks", "1"], "--ranks: 1: give a whole number from 2 to 64"),
    ("uneven_ranks", ["--dgc", FAKE, "--stop", "3", "--every", "2"], "--stop: give less than --every"),
]


class AsAUser(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "notes.txt").write_text("mine\n")

    def call(self, name, *words):
        return subprocess.run([BENCH / name, *words], cwd=self.folder, capture_output=True, text=True)

    def test_help(self):
        for path in PROGRAMS:
            with self.subTest(path.name):
                done = self.call(path.name, "--help")
                lacking = re.search(r"No module named '(torch|torchvision|nvidia)\b", done.stderr)
                if lacking:
                    self.skipTest(f"{lacking[1]} is not on this machine")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                first = path.read_text().split('"""')[1].split("\n")[0]
                self.assertIn(first, done.stdout)

    def test_what_is_wrong_is_one_sentence_and_nothing_is_harmed(self):
        for name, words, sentence in WRONG:
            with self.subTest(name, words=words):
                done = self.call(name, *words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rf"^{name}: [^\n]*\n$")
                self.assertIn(sentence, done.stderr)
                self.assertEqual([path.name for path in self.folder.iterdir()], ["notes.txt"])
                self.assertEqual((self.folder / "notes.txt").read_text(), "mine\n")

    def test_a_signal_ends_children_and_temporary_folders(self):
        dgc = self.folder / "dgc"
        dgc.write_text("#!/bin/sh\nexec sleep 1000\n")
        dgc.chmod(0o755)
        temporary = self.folder / "temporary"
        temporary.mkdir()
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                caller = subprocess.Popen([BENCH / "sent_again", "--dgc", dgc, "--config", "notes.txt", "--at", "3"],
                                          cwd=self.folder, env=os.environ | {"TMPDIR": str(temporary)},
                                          # A test that runs in the background may have got "ignore".
                                          preexec_fn=lambda number=number: signal.signal(number, signal.SIG_DFL))
                self.addCleanup(caller.kill)
                child = int(processes.wait_for("a child", lambda: self.asleep(caller.pid)))
                caller.send_signal(number)
                self.assertEqual(caller.wait(60), 128 + number)
                self.assertNotIn("sleep", processes.read(f"/proc/{child}/cmdline"))
                self.assertEqual(list(temporary.iterdir()), [])

    def test_local_steps_are_compared_with_dense_training_seed_by_seed(self):
        def ended(name, seed, every, accuracy, epoch=6.0, sent=80, diverged=False, **optimizer):
            run = self.folder / name / f"seed{seed}"
            run.mkdir(parents=True)
            (run / "config.json").write_text(json.dumps({
                "seed": seed, "optimizer": optimizer, "exchange": {"every_steps": every},
                "training": {"batch_per_worker": 8}}))
            (run / "metrics.jsonl").write_text(json.dumps({
                "kind": "final", "epoch": epoch, "test_accuracy": accuracy, "diverged": diverged,
                "mean_sent_bytes_after_warmup": sent if optimizer else 8000}) + "\n")

        for seed, dense, sparse in ((1, 0.71, 0.70), (2, 0.78, 0.74), (3, 0.80, 0.90)):
            ended("dense", seed, 1, dense)
            if seed < 3:
                ended("every_1", seed, 1, sparse, sent=40 * seed, sparsity=0.99)
        ended("every_4", 2, 4, 0.0, diverged=True, sparsity=0.99)
        ended("every_4", 3, 4, 0.79, sparsity=0.99)
        ended("every_16", 4, 16, 0.79, sparsity=0.99)
        ended("every_64", 1, 64, 0.70, epoch=4.0, sparsity=0.99, warmup={"epochs": 4})
        ended("warm_only", 1, 1, 0.70, epoch=3.5, sparsity=0.999, warmup={"epochs": 4})
        ended("rows_lost", 1, 2, 0.70, sent=None, sparsity=0.999)
        (self.folder / "dense" / "seed1.before").symlink_to("seed2")  # as a copy that somebody has kept
        done = self.call("local_steps", ".", "--out", "picture.svg")
        self.assertEqual((done.returncode, done.stderr), (0, "every_4/seed2: diverged, and is left out\n"))
        picture = (self.folder / "picture.svg").read_text()
        self.assertIn("every 16", picture)
        self.assertNotIn("every 64", picture)
        self.assertNotIn("99.9 %", picture)
        self.assertEqual(done.stdout.splitlines()[2:], [
            "| 99 % | 1 | 7.50 | 133x | 72.00 ± 2.83 % | 2 | -2.50 ± 19.06 |",  # -1 and -4: 12.706 x 2.121 / sqrt(2)
            "| 99 % | 4 | 10.00 | 100x | 79.00 % | 1 | -1.00 (one seed) |",
            "| 99 % | 16 | 10.00 | 100x | 79.00 % | 1 |  |",
            "| 99 % | 64 | – | – | 70.00 % | 1 | -1.00 (one seed) |",
            "| 99.9 % | 1 | – | – | 70.00 % | 1 | -1.00 (one seed) |",
            "| 99.9 % | 2 | – | – | 70.00 % | 1 | -1.00 (one seed) |",
            "| dense | 1 | 1,000.00 | 1x | 76.33 ± 4.73 % | 3 |  |"])

        ended("every_4", 4, 4, 0.79, sparsity=0.99, momentum=0.9)
        done = self.call("local_steps", ".")
        self.assertEqual((done.returncode, done.stderr), (
            2, "every_4/seed2: diverged, and is left out\nlocal_steps: every_4/seed4: its config.json says another "
            "experiment than that of the seed before it\n"))

    def test_local_steps_of_a_language_model_are_told_by_its_perplexity(self):
        for name, every, perplexity, optimizer in (("dense", 1, 108.5, {}), ("every_4", 4, 110.0, {"sparsity": 0.99}),
                                                   ("every_16", 16, None, {"sparsity": 0.99})):
            run = self.folder / name / "seed1"
            run.mkdir(parents=True)
            (run / "config.json").write_text(json.dumps({
                "seed": 1, "optimizer": optimizer, "exchange": {"every_steps": every},
                "training": {"batch_per_worker": 5}}))
            (run / "metrics.jsonl").write_text(json.dumps({
                "kind": "final", "epoch": 1.0, "test_accuracy": 0.25, "test_perplexity": perplexity,
                "diverged": perplexity is None,
                "mean_sent_bytes_after_warmup": 100 if optimizer else 1000}) + "\n")
        done = self.call("local_steps", ".", "--out", "picture.svg")
        self.assertEqual(done.stderr, "every_16/seed1: diverged, and is left out\n")
        self.assertEqual(done.stdout.splitlines()[2:], [
            "| 99 % | 4 | 20.00 | 10x | 110.00 | 1 | +1.50 (one seed) |", "| dense | 1 | 200.00 | 1x | 108.50 | 1 |  |"])
        self.assertIn("Perplexity against what a worker sends", (self.folder / "picture.svg").read_text())

    def asleep(self, caller):
        children = processes.read(f"/proc/{caller}/task/{caller}/children").split()
        return next((pid for pid in children if processes.read(f"/proc/{pid}/cmdline").startswith("sleep")), None)


class Shared(unittest.TestCase):
    def test_a_command_that_takes_too_long_is_ended(self):
        self.assertIsNone(processes.run(["sleep", 1000], 0.01).returncode)
        with self.assertRaisesRegex(program.Failure, "^the point: not done in 0.01 s$"):
            program.output_of(["sleep", 1000], "the point", seconds=0.01)

    def test_what_a_command_says(self):
        self.assertEqual(program.output_of(["printf", 7]), "7")
        with self.assertRaisesRegex(program.Failure, "^a.json: cannot open this file$") as failed:
            program.output_of(["sh", "-c", "echo error: a.json: cannot open this file >&2; exit 2"])
        self.assertEqual(failed.exception.code, 2)
        with self.assertRaises(program.Failure) as failed:  # the user has seen what it said
            program.output_of(["sh", "-c", "exit 2"], stderr=None)
        self.assertEqual(failed.exception.code, 2)
        with self.assertRaisesRegex(program.Failure, "^sh -c 'echo lost >&2; exit 3': exit code 3\nlost$") as failed:
            program.output_of(["sh", "-c", "echo lost >&2; exit 3"])
        self.assertEqual(failed.exception.code, 1)

    def test_a_row_that_is_not_whole_yet(self):
        with tempfile.TemporaryDirectory() as folder:
            metrics = pathlib.Path(folder, "metrics.jsonl")
            self.assertEqual(run_files.rows_of(folder), [])
            metrics.write_text('{"kind":"step","step":1}\n{"kind":"step","phases":{"pack":1}')
            self.assertEqual(run_files.rows_of(folder, "step"), [{"kind": "step", "step": 1}])

    def test_a_record_goes_on_under_its_own_conditions_alone(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("sys.stderr", io.StringIO()):
            file = pathlib.Path(folder, "record.json")
            first = Record(file, ["rows"])
            first.begin(FAKE)
            first.under({"--steps": 3})
            first.add("rows", {"ms": 7})
            self.assertEqual(json.loads(file.read_text())["rows"], [{"ms": 7}])
            second = Record(file, ["rows"])
            second.begin(FAKE)
            second.under({"--steps": 3})
            with self.assertRaisesRegex(program.Failure, "was measured with --steps 3, and this would be with 4; give"):
                second.under({"--steps": 4})
            with self.assertRaisesRegex(program.Failure, "does not say with which --kbps"):
                second.under({"--kbps": 4})
            self.assertEqual(second.all["rows"], [{"ms": 7}])


if __name__ == "__main__":
    unittest.main()
