"""One attempt at a run that kill_resume makes: a process, or ranks under mpirun, of which it kills one."""

import pathlib
import re
import signal
import subprocess
import time

from processes import MPIRUN, end_gently, ends_with_this_process, left_of, rank_of, read, send
from program import settings


class Attempt:
    def __init__(self, options, layout, run, *more):
        self.ranks, workers = layout or (1, None)
        self.what = f"{self.ranks}x{workers}" if layout else "one process"
        self.run = run
        launcher = [*MPIRUN, "--mca", "orte_abort_print_stack", 0, "-n", self.ranks] if self.ranks > 1 else []
        sets = [f"checkpoint.every_steps={options.save_every}", *options.set]
        if layout:
            sets.append(f"workers_per_rank={workers}")
        command = [*launcher, options.dgc, "train", options.config, "--out", run, *settings(sets), *more]
        self.log = pathlib.Path(f"{run}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=ends_with_this_process,
                                            start_new_session=True)  # Ctrl-C is not for mpirun, which is ended below
        self.killed = None  # (rank, pid, when)

    def running(self):
        return self.process.poll() is None

    def ended_within(self, seconds):
        try:
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def said(self):
        return self.log.read_text(errors="replace")

    def mpirun_crashed(self):
        """Open MPI 4.1 does so once in some hundred times, when all is over."""
        return "PMIx_server_finalize" in self.said()

    def kill(self, rng):
        """SIGKILL to a random rank; what was hit, or None when all has ended by itself."""
        while self.running():
            alive = {0: self.process.pid} if self.ranks == 1 else ranks_below(self.process.pid)
            if len(alive) == self.ranks or (alive and rng.random() < 0.01):  # mostly once all have been started
                rank = rng.choice(sorted(alive))
                self.killed = rank, alive[rank], time.monotonic()
                send(alive[rank], signal.SIGKILL)
                if self.ranks == 1:
                    self.process.wait()
                return f"rank {rank} killed" if self.ranks > 1 else "killed"
            time.sleep(0.001)
        return None

    def aftermath(self, within):
        """Waits for the end of all ranks: the seconds from the kill to then, by whom the dead rank was named, and what
        was not as it must be."""
        rank, pid, when = self.killed
        problems = []
        if not self.ended_within(within):
            problems.append(f"the other ranks did not end within {within:g} s")
            end_gently(self.process)
        seconds = time.monotonic() - when
        left = left_of(self.run, 1)  # mpirun may end a moment before those that it has killed
        if left:
            problems.append(f"processes {left} stayed behind")
            for other in left:
                send(other, signal.SIGKILL)
        said = self.said()
        died = rf"rank \d+: rank {rank} \(.*pid {pid}\) has died"
        ours = re.search(f"^error: {died}", said, re.M)
        logged = re.search(died, read(self.run / "log.txt"))  # mpirun forwards nothing more once it ends the others
        theirs = re.search(rf"process rank {rank} with PID \d+ on node \S+ exited on signal 9", said)
        # A rank that had done everything is not missed.
        done = self.process.returncode == 0
        named = ("named by dgc" if ours else
                 "named by dgc in log.txt, by mpirun" if logged and theirs else
                 "named by mpirun alone" if theirs else
                 "killed when all was done" if done else
                 "mpirun crashed itself" if self.mpirun_crashed() else
                 "killed before the ranks had met, named by nobody" if "ranks exchange through" not in said else
                 "named by nobody")
        if named == "named by nobody":
            problems.append(f"nobody named rank {rank}")
        errors = re.findall("^error: .*", said, re.M)
        if len(errors) > 1:
            problems.append(f"{len(errors)} errors instead of one: {errors}")
        return seconds, named, problems


def ranks_below(mpirun):
    """{rank: pid} of the processes that this mpirun has started."""
    found = {}
    for pid in read(f"/proc/{mpirun}/task/{mpirun}/children").split():
        rank = rank_of(pid)
        if rank is not None:
            found[rank] = int(pid)
    return found
