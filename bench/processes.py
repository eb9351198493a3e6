"""What slow_links, kill_resume and soak know of processes."""

import ctypes
import pathlib
import re
import signal

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def ends_with_this_process():
    """For Popen's preexec_fn: however this process ends, the child is asked to."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def processes_of(run):
    """Pids of all processes that have the run's folder among their words."""
    word = f"\0{run}\0"
    return [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if word in read(path)]


def rank_of(pid):
    """None: it is not a process that Open MPI has made a rank."""
    found = re.search(r"\0OMPI_COMM_WORLD_RANK=(\d+)\0", read(f"/proc/{pid}/environ"))
    return int(found[1]) if found else None


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
