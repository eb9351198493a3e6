#!/usr/bin/env python3
"""dgc under SLURM, on a cluster of three nodes that this test starts on this machine: each node is a slurmd in a network, a
host name and a /tmp of its own. Needs root and Debian's slurm-wlm, munge and iproute2; without them it says "skipped" and
why.

    tests/slurm/slurm_test.py --dgc build/release/dgc
    tests/slurm/slurm_test.py --dgc build/release/dgc --long     # with a real time limit: three minutes more
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import netns  # noqa: E402
from processes import ends_with_this_process  # noqa: E402

NODES = 3
JOB = ROOT / "docs" / "slurm_job.sh"
CONFIG = {
    "seed": 1,
    "name": "small",
    "device": "cpu",
    "model": {"type": "resnet", "depth": 20, "classes": 10},
    "data": {"type": "synthetic", "train_samples": 512, "test_samples": 64},
    "training": {"epochs": 2, "batch_per_worker": 8},
    "optimizer": {"type": "dgc", "momentum": 0.9, "sparsity": 0.99, "warmup": {"epochs": 0}},
    "learning_rate": {"type": "constant", "base": 0.05},
    "exchange": {"failure_timeout_s": 5},
    "checkpoint": {"every_steps": 4, "keep": 2},
    "threads": 1,
}
SLURM_CONF = """
ClusterName=dgc
SlurmctldHost=dgc-ctl(10.213.77.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool_%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd_%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd_%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=5
KillWait=10
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def sh(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options).stdout


class Cluster:
    """The networks and the daemons, in a folder for all that they write."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []

    def start(self):
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        nodes = "\n".join(f"NodeName=dgc-n{i} NodeAddr=10.213.77.{i} CPUs=4" for i in range(1, NODES + 1))
        (self.folder / "slurm.conf").write_text(SLURM_CONF.format(folder=self.folder, nodes=nodes))
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n10.213.77.254 dgc-ctl\n" + "".join(
            f"10.213.77.{i} dgc-n{i}\n" for i in range(1, NODES + 1)))
        sh("ip", "netns", "add", "dgc-ctl")
        self.ip("dgc-ctl", "link", "add", "bridge", "type", "bridge")
        self.ip("dgc-ctl", "address", "add", "10.213.77.254/24", "dev", "bridge")
        for device in ("lo", "bridge"):
            self.ip("dgc-ctl", "link", "set", device, "up")
        self.daemon("dgc-ctl", "munged", "--foreground", "--force", f"--key-file={key}",
                    f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid",
                    f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed")
        self.daemon("dgc-ctl", "slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        for i in range(1, NODES + 1):
            self.start_node(i)

    def start_node(self, i):
        name = f"dgc-n{i}"
        sh("ip", "netns", "add", name)
        self.ip("dgc-ctl", "link", "add", f"to-n{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
        self.ip("dgc-ctl", "link", "set", f"to-n{i}", "master", "bridge", "up")
        self.ip(name, "address", "add", f"10.213.77.{i}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            self.ip(name, "link", "set", device, "up")
        for made in ("tmp", "spool"):
            (self.folder / f"{made}_{name}").mkdir()
        return self.daemon(name, "slurmd", "-D", "-f", str(self.folder / "slurm.conf"), "-N", name,
                           tmp=self.folder / f"tmp_{name}")

    def ip(self, space, *words):
        sh("ip", "-n", space, *words)

    def inside(self, space, *words, tmp=None):
        """The command in the node's network, with its host name, its /etc/hosts, its /tmp and its shared memory."""
        mounts = f"mount --bind {self.folder}/hosts /etc/hosts"
        if tmp is not None:
            mounts += f" && mount --bind {tmp} /tmp && mount -t tmpfs tmpfs /dev/shm"
        script = f'hostname {space} && {mounts} && exec "$@"'
        return ["nsenter", f"--net=/run/netns/{space}", "unshare", "-m", "-u", "bash", "-c", script, "bash", *words]

    def environment(self):
        environment = os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf")}
        environment.pop("TMPDIR", None)  # each node has a /tmp
        return environment

    def daemon(self, space, *words, tmp=None):
        with open(self.folder / f"{words[0]}_{space}.out.log", "w") as log:
            made = subprocess.Popen(self.inside(space, *words, tmp=tmp), stdout=log, stderr=log,
                                    env=self.environment(), start_new_session=True,
                                    preexec_fn=ends_with_this_process)
        self.daemons.append(made)
        return made

    def run(self, *words, timeout=120):
        return subprocess.run(self.inside("dgc-ctl", *words), env=self.environment(), capture_output=True, text=True,
                              timeout=timeout)

    def wait_for(self, what, condition, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            if condition():
                return
            time.sleep(0.2)
        raise AssertionError(f"{what}: not within {seconds} s\n" + self.logs())

    def logs(self):
        return "\n".join(f"--- {file.name}\n" + "\n".join(file.read_text().splitlines()[-15:])
                         for file in sorted(self.folder.glob("*.log")))

    def idle_nodes(self):
        return len(self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.split())

    def kill_node(self, i):
        """The machine is gone: its network, and all processes in it."""
        self.ip("dgc-ctl", "link", "set", f"to-n{i}", "down")
        self.kill_all_in(f"dgc-n{i}")

    def kill_all_in(self, space):
        found = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True)
        for pid in found.stdout.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def stop(self):
        for space in ["dgc-ctl"] + [f"dgc-n{i}" for i in range(1, NODES + 1)]:
            self.kill_all_in(space)
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)
        for daemon in self.daemons:
            daemon.wait()


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Not in /tmp, of which each node has its own.
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="dgc_slurm_", dir="/var/tmp"))
        cls.folder.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.config = cls.folder / "small.json"
        cls.config.write_text(json.dumps(CONFIG))
        alone = cls.folder / "alone"
        sh(DGC, "train", cls.config, "--set", "workers_per_rank=4", "--out", alone)
        cls.expected = cls.weights(alone)
        cls.cluster = Cluster(cls.folder)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.cluster.wait_for("all nodes are idle", lambda: cls.cluster.idle_nodes() == NODES)

    @staticmethod
    def weights(run):
        newest = sorted((run / "checkpoints").glob("step-*"))[-1]
        return newest.name, hashlib.sha256((newest / "weights.safetensors").read_bytes()).hexdigest()

    def test_srun_over_mpi_gives_the_bits_of_one_process(self):
        out = self.folder / "srun"
        done = self.cluster.run("srun", "--mpi=pmix", "--nodes", "2", "--ntasks-per-node", "2", "--kill-on-bad-exit=1",
                                DGC, "train", str(self.config), "--out", str(out))
        self.assertEqual(done.returncode, 0, done.stderr + self.cluster.logs())
        self.assertEqual(self.weights(out), self.expected)

    def test_a_wrong_config_is_said_once_and_ends_with_2(self):
        done = self.cluster.run("srun", "--mpi=pmix", "--nodes", "2", "--ntasks-per-node", "2", "--kill-on-bad-exit=1",
                                DGC, "train", str(self.config), "--set", "optimizer.momentum=2")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("out of range"), 1, done.stderr)

    def test_ranks_on_processors_need_mpi(self):
        done = self.cluster.run("srun", "--nodes", "2", "--ntasks-per-node", "1", "--kill-on-bad-exit=1", DGC, "train",
                                str(self.config), "--out", str(self.folder / "no_mpi"))
        self.assertNotEqual(done.returncode, 0)  # 2, or 143 where srun has ended a rank that was about to say the same
        self.assertIn("srun --mpi=pmix", done.stderr)

    def submit(self, out, *more, config=None):
        """Submits docs/slurm_job.sh for a run; returns the job's number when its first checkpoint is there."""
        bin = self.folder / "bin"
        bin.mkdir(exist_ok=True)
        if not (bin / "dgc").exists():
            (bin / "dgc").symlink_to(DGC)
        made = self.cluster.run("env", f"PATH={bin}:{os.environ['PATH']}", "sbatch", "--parsable", "--output", f"{out}.out",
                                *more, str(JOB), str(config or self.config), str(out))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.cluster.wait_for("a first checkpoint", lambda: any(out.glob("checkpoints/step-*/weights.safetensors")))
        return made.stdout.strip()

    def expect_restart(self, job, out):
        def ended():
            state = self.cluster.run("scontrol", "show", "job", job).stdout
            return any(f"JobState={word}" in state for word in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"))
        self.cluster.wait_for(f"job {job} ends", ended, 120)
        state = self.cluster.run("scontrol", "show", "job", job).stdout
        log = pathlib.Path(f"{out}.out").read_text()
        self.assertIn("Restarts=1", state, log)
        self.assertIn("JobState=COMPLETED", state, log)
        self.assertEqual(self.weights(out), self.expected)

    def test_a_job_that_is_signalled_saves_is_requeued_and_goes_on(self):
        out = self.folder / "signalled"
        job = self.submit(out)
        self.cluster.run("scancel", "--signal=USR1", job)  # to the tasks, as SLURM itself does 120 s before the end
        self.expect_restart(job, out)
        self.assertIn("the state is saved, go on with --resume", (out / "log.txt").read_text())

    def test_a_job_whose_node_dies_is_requeued_and_goes_on(self):
        out = self.folder / "died"
        job = self.submit(out)
        nodes = self.cluster.run("squeue", "-h", "-j", job, "-o", "%N").stdout.strip()
        last = self.cluster.run("scontrol", "show", "hostnames", nodes).stdout.split()[-1]
        self.cluster.kill_node(int(last[-1]))
        self.expect_restart(job, out)

    def test_a_job_whose_time_is_up_has_saved_and_goes_on(self):
        if not LONG:
            self.skipTest("SLURM counts time limits in minutes: --long")
        config = self.folder / "endless.json"
        config.write_text(json.dumps(CONFIG | {"training": {"epochs": 100000, "batch_per_worker": 8}}))
        out = self.folder / "time_is_up"
        job = self.submit(out, "--time=2", "--signal=USR1@30", config=config)
        saved = "the state is saved, go on with --resume"
        self.cluster.wait_for("SLURM's signal", lambda: saved in (out / "log.txt").read_text(), 180)
        stopped_at = self.weights(out)[0]
        self.cluster.wait_for("a checkpoint of the second attempt", lambda: self.weights(out)[0] > stopped_at, 120)
        state = self.cluster.run("scontrol", "show", "job", job).stdout
        self.cluster.run("scancel", job)
        self.assertIn("Restarts=1", state)
        self.assertIn("TimeLimit=00:02:00", state)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dgc", required=True, help="the program")
    parser.add_argument("--long", action="store_true", help="with the test that waits for a time limit")
    options, rest = parser.parse_known_args()
    DGC, LONG = os.path.abspath(options.dgc), options.long
    lacking = netns.lacking("slurmctld", "slurmd", "srun", "munged")
    if lacking is not None:
        print(f"skipped: {lacking}")
        sys.exit(0)
    netns.hide()  # so that two of these tests may run at once
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
