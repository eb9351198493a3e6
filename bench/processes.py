"""What the programs in bench/ and the tests of launchers know of processes."""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]  # ranks of this machine
SOURCES = {"dgc": "scripts/build makes it", "test_kernels": "scripts/build release --with-tests test_kernels makes it",
           "ip": "apt-get install iproute2", "tc": "apt-get install iproute2", "mpirun": "apt-get install openmpi-bin",
           "unshare": "apt-get install util-linux", "mount": "apt-get install mount"}


def lacking(*programs):
    """A sentence about the first of these that is not there; None: all are."""
    for program in map(str, programs):
        if shutil.which(program) is None:
            source = SOURCES.get(pathlib.Path(program).name)
            return f"there is no program {program}" + (f": {source}" if source else "")
    return None


def ends_with_this_process():
    """For Popen's preexec_fn: however this process ends, the child is asked to."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run(command, seconds=None, **more):
    """A CompletedProcess with what the command said, and with the returncode None where the time was up. The command is
    ended gently then, and when this process is. more: of Popen."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
    with subprocess.Popen(list(map(str, command)), preexec_fn=ends_with_this_process, **streams) as process:
        try:
            said = process.communicate(timeout=seconds)
            return subprocess.CompletedProcess(command, process.returncode, *said)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, None, "", "")
        finally:
            if process.poll() is None:
                end_gently(process)


def end_gently(process):
    """mpirun ends its ranks."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()
    process.wait()


def send(pid, number):
    """A signal to a process that may have gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def processes_of(run_folder):
    """Pids of all processes that have the run's folder among their words."""
    word = f"\0{run_folder}\0"
    return [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if word in read(path)]


def left_of(run_folder, seconds):
    """Those of them that do not end within so many seconds."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(run_folder)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def end_all(launcher, run_folder):
    """Kills a launcher, which is a Popen, and all processes of the run."""
    launcher.kill()
    for pid in processes_of(run_folder):
        send(pid, signal.SIGKILL)
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
