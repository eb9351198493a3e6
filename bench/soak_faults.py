"""The faults of soak. Each lasts for as long as its function runs, which returns what it was.

A function gets the site (Site) and a random generator of its own, and waits with site.wait(seconds)."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import time
import typing

from processes import processes_of, rank_of, send
from record import write_anew

SECONDS = 20
SHORT_STOP, LONG_STOP = 3, 15  # beside exchange.failure_timeout_s = 10, of which a rank may be silent for 8
SLOW_BPS = 50_000
CLOCK_STEPS = (-86400, -3600, -1, 1, 3600, 86400)


@dataclasses.dataclass
class Site:
    links: typing.Any  # netns.Links
    usual_bps: int     # of every link
    run: pathlib.Path  # on a disk of its own
    clocks: list       # files, one a machine, that say how far its time of day is from the true one
    wait: typing.Callable[[float], None]

    def ranks(self):
        """[(rank, pid)] of all that live; two of a number while one attempt follows another."""
        found = [(rank_of(pid), pid) for pid in processes_of(self.run)]
        return sorted((rank, pid) for rank, pid in found if rank is not None)

    def machine(self, rng):
        return rng.randrange(self.links.ranks)


def set_clock(file, offset):
    write_anew(file, f"{offset:+}\n")


def kill(site, rng):
    ranks = site.ranks()
    if not ranks:
        return "no rank lives that could be killed"
    rank, pid = rng.choice(ranks)
    send(pid, signal.SIGKILL)
    return f"rank {rank} (pid {pid}) killed"


def stop(site, rng):
    ranks = site.ranks()
    seconds = rng.choice([SHORT_STOP, LONG_STOP])
    if not ranks:
        return "no rank lives that could be stopped"
    rank, pid = rng.choice(ranks)
    send(pid, signal.SIGSTOP)
    try:
        site.wait(seconds)
    finally:
        send(pid, signal.SIGCONT)
    return f"rank {rank} (pid {pid}) stopped for {seconds} s"


def disk(site, _):
    """Old checkpoints and failed saves make room meanwhile, so the file grows for as long as it lies there."""
    filler = site.run.parent / "filler"
    end = time.monotonic() + SECONDS
    with open(filler, "wb", buffering=0) as file:
        try:
            while time.monotonic() < end:
                fill_up(file)
                site.wait(0.25)
        finally:
            filler.unlink()
    return f"disk full for {SECONDS} s"


def fill_up(file):
    room = os.fstatvfs(file.fileno())
    with contextlib.suppress(OSError):  # somebody else has taken the room, or there is none
        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, room.f_bavail * room.f_frsize)


def down(site, rng):
    machine = site.machine(rng)
    site.links.cut(machine)
    try:
        site.wait(SECONDS)
    finally:
        site.links.join(machine)
    return f"link of machine {machine} down for {SECONDS} s"


def slow(site, rng):
    machine = site.machine(rng)
    site.links.shape_one(machine, SLOW_BPS)
    try:
        site.wait(SECONDS)
    finally:
        site.links.shape_one(machine, site.usual_bps)
    return f"link of machine {machine} at {SLOW_BPS // 1000} kbit/s for {SECONDS} s"


def clock(site, rng):
    """It stays where it is afterwards."""
    machine = site.machine(rng)
    file = site.clocks[machine]
    offset = int(file.read_text()) + rng.choice(CLOCK_STEPS)
    set_clock(file, offset)
    return f"clock of machine {machine} stepped, now {offset:+} s"


FAULTS = {function.__name__: function for function in (kill, stop, disk, down, slow, clock)}
