#!/usr/bin/python3
"""dgc under mpirun on three machines that this machine plays: each has a network and a host name of its own, so ranks
reach one another over TCP alone. Needs root, iproute2 and Open MPI; without them it says "skipped" and why.

    tests/machines/mpirun_test.py --dgc build/release/dgc
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import netns  # noqa: E402
import run_files  # noqa: E402
from processes import end_all, processes_of, rank_of, wait_for  # noqa: E402

TRAIN = ["train", ROOT / "bench" / "tiny.json", "--set", "device=cpu"]
MACHINES = 3
ENDLESS = ["--set", "training.max_steps=1000000", "--set", "training.epochs=1000000", "--set",
           "checkpoint.every_steps=10"]
# Without these mpirun waits for its own process on a machine that is cut off until that machine is back.
NOTICES_CUTS = ["--mca", "oob_tcp_keepalive_time", 2, "--mca", "oob_tcp_keepalive_intvl", 1, "--mca",
                "oob_tcp_keepalive_probes", 3]


class Mpirun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="dgc_machines_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.links = cls.enterClassContext(netns.Links(MACHINES))

    def start(self, name, *more, launcher=()):
        run = self.folder / name
        command = self.links.mpirun([DGC, *TRAIN, "--out", run, *more], launcher)
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(end_all, process, run)
        return process, run

    def ranks(self, run):
        return {rank_of(pid): pid for pid in processes_of(run) if rank_of(pid) is not None}

    def test_it_ends_in_the_bits_of_one_process(self):
        alone = self.folder / "alone"
        subprocess.run([DGC, *TRAIN, "--set", f"workers_per_rank={MACHINES}", "--out", alone], check=True,
                       capture_output=True)
        process, run = self.start("together")
        said = process.communicate()[0]
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(run_files.final_hash(run), run_files.final_hash(alone))

    def test_a_rank_that_dies_is_named_with_its_machine(self):
        process, run = self.start("killed", *ENDLESS)
        wait_for("a checkpoint", lambda: run_files.checkpoints(run))
        pid = self.ranks(run)[2]
        os.kill(pid, signal.SIGKILL)
        said = process.communicate()[0]
        self.assertNotEqual(process.returncode, 0)
        # mpirun may end the other ranks before they can say who died. It then names the machine itself, by the name of
        # the host or as --host names it: by its address.
        self.assertRegex(said + (run / "log.txt").read_text(),
                         rf"rank 2 \(rank2, pid {pid}\) has died|"
                         rf"process rank 2 with PID {pid} on node (rank2|{self.links.address(2)}) exited")
        wait_for("no process is left", lambda: not processes_of(run))

    def test_a_machine_that_is_cut_off_ends_all_ranks(self):
        process, run = self.start("cut", *ENDLESS, "--set", "exchange.failure_timeout_s=4")
        wait_for("a checkpoint", lambda: run_files.checkpoints(run))
        self.links.cut(1)
        self.addCleanup(self.links.join, 1)
        wait_for("all ranks have ended", lambda: not self.ranks(run))
        self.links.join(1)
        said = process.communicate()[0]
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(said + (run / "log.txt").read_text(),
                         r"rank \d \(rank\d, pid \d+\) has not answered for 3.2 s")
        wait_for("no process is left", lambda: not processes_of(run))

    def test_mpirun_ends_while_a_machine_is_away(self):
        process, run = self.start("away", *ENDLESS, launcher=NOTICES_CUTS)
        wait_for("a checkpoint", lambda: run_files.checkpoints(run))
        self.links.cut(1)
        self.addCleanup(self.links.join, 1)
        wait_for("mpirun has ended", lambda: process.poll() is not None)
        self.assertNotEqual(process.returncode, 0)
        self.links.join(1)
        wait_for("no process is left", lambda: not processes_of(run))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dgc", required=True, help="the program")
    options, rest = parser.parse_known_args()
    DGC = os.path.abspath(options.dgc)
    lacking = netns.lacking("mpirun")
    if lacking is not None:
        print(f"skipped: {lacking}")
        sys.exit(0)
    netns.hide()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
