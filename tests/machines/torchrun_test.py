#!/usr/bin/python3
"""torchrun as the launcher of dgc on a CUDA and an NCCL that need no GPU. Where torchrun is missing or does not start a
program, it says "skipped" and why; --torchrun names another one than that in PATH.

    tests/machines/torchrun_test.py --dgc build/release/dgc_on_fake_cuda
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import run_files  # noqa: E402
from processes import end_all, ends_with_this_process, processes_of, wait_for  # noqa: E402

CONFIG = ROOT / "bench" / "tiny.json"
SHORT = ["--set", "training.max_steps=30", "--set", "checkpoint.every_steps=5"]
ENDLESS = ["--set", "training.max_steps=1000000", "--set", "training.epochs=1000000", "--set",
           "checkpoint.every_steps=5", "--set", "exchange.failure_timeout_s=20"]
RANKS = 2


def why_not():
    """What keeps torchrun from being tried, or None."""
    if shutil.which(TORCHRUN) is None:
        return f"{TORCHRUN} is not on this machine"
    command = [TORCHRUN, "--nproc_per_node", "1", "--master_port", str(free_port()), "--no_python", "true"]
    with tempfile.TemporaryFile("w+") as said:  # a pipe would stay open for as long as any process that torchrun started
        tried = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        try:
            code = tried.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(tried.pid, signal.SIGKILL)
            tried.wait()
            return f"{TORCHRUN} does not end within 60 s, whatever it starts"
        said.seek(0)
        return None if code == 0 else f"{TORCHRUN} fails: {(said.read().strip() or '?').splitlines()[-1]}"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Torchrun(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dgc_torchrun_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, run, *more):
        command = [TORCHRUN, "--nproc_per_node", RANKS, "--master_port", free_port(), "--no_python", DGC, "train", CONFIG,
                   "--out", run, *more]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=os.environ | {"DGC_FAKE_GPUS": str(RANKS)}, preexec_fn=ends_with_this_process)
        self.addCleanup(process.stdout.close)
        self.addCleanup(end_all, process, run)
        return process

    def hash_of_one_process(self):
        alone = self.folder / "alone"
        subprocess.run([DGC, "train", CONFIG, "--out", alone, "--set", f"workers_per_rank={RANKS}", *SHORT], check=True,
                       capture_output=True)
        return run_files.final_hash(alone)

    def test_it_ends_in_the_bits_of_one_process_also_after_a_signal(self):
        run = self.folder / "run"
        first = self.start(run, *ENDLESS)
        wait_for("a checkpoint", lambda: run_files.checkpoints(run))
        first.send_signal(signal.SIGTERM)
        said = first.communicate()[0]
        self.assertIn("the state is saved, go on with --resume", said)
        short = self.folder / "short"
        whole = self.start(short, *SHORT)
        said = whole.communicate()[0]
        self.assertEqual(whole.returncode, 0, said)
        self.assertEqual(run_files.final_hash(short), self.hash_of_one_process())

    def test_a_mistake_is_one_sentence_and_exit_code_2(self):
        process = self.start(self.folder / "run", "--set", "model.depth=9")
        said = process.communicate()[0]
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(said, r"exitcode +: 2 ")
        self.assertIn("error: rank 0: --set model.depth=9", said)

    def test_a_rank_that_is_killed_ends_all_and_a_restart_goes_on(self):
        run = self.folder / "run"
        process = self.start(run, *ENDLESS)
        wait_for("a checkpoint", lambda: run_files.checkpoints(run))
        ranks = [pid for pid in processes_of(run) if pid != process.pid]
        self.assertEqual(len(ranks), RANKS)
        os.kill(max(ranks), signal.SIGKILL)
        said = process.communicate()[0]
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("Signal 9 (SIGKILL)", said)
        wait_for("no process is left", lambda: not processes_of(run))
        again = self.start(run, *ENDLESS, "--resume", "--set", f"training.max_steps={self.last_step(run) + 10}")
        self.assertEqual(again.wait(), 0)

    @staticmethod
    def last_step(run):
        return run_files.step_of(run_files.checkpoints(run)[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dgc", required=True, help="the program dgc_on_fake_cuda")
    parser.add_argument("--torchrun", default="torchrun")
    options, rest = parser.parse_known_args()
    DGC, TORCHRUN = os.path.abspath(options.dgc), options.torchrun
    lacking = why_not()
    if lacking is not None:
        print(f"skipped: {lacking}")
        sys.exit(0)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
