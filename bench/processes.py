"""What the programs in bench/ and the tests of launchers know of processes."""

import ctypes
import os
import pathlib
import re
import signal
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def ends_with_this_process():
    """For Popen's preexec_fn: however this process ends, the child is asked to."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def processes_of(run):
    """Pids of all processes that have the run's folder among their words."""
    word = f"\0{run}\0"
    return [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if word in read(path)]


def end_all(launcher, run):
    """Kills a launcher, which is a Popen, and all processes of the run."""
    launcher.kill()
    for pid in processes_of(run):
        os.kill(pid, signal.SIGKILL)
    launcher.wait()


def wait_for(what, condition, seconds=60):
    """What the condition returns, once that is true. Raises AssertionError, as a test does, after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def rank_of(pid):
    """None: it is not a process that Open MPI has made a rank."""
    found = re.search(r"\0OMPI_COMM_WORLD_RANK=(\d+)\0", read(f"/proc/{pid}/environ"))
    return int(found[1]) if found else None


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
