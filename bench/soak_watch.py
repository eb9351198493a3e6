"""What soak looks at while the training runs: how far it is, and what each process takes."""

import contextlib
import json
import pathlib
import re
import threading
import time

from processes import processes_of, rank_of, read

LOOK, SAMPLE = 0.25, 5  # seconds between two looks at the run, and between two at its processes


class Watch(threading.Thread):
    """Until stop(). `beats` are the times at which rows were added to metrics.jsonl, in seconds; the watch begins at
    second `first`. What the processes of the run take is added to a file."""

    def __init__(self, run, name_of, file, first=0):
        super().__init__(daemon=True)
        self.metrics = pathlib.Path(run, "metrics.jsonl")
        self.run_folder, self.name_of, self.file = run, name_of, file
        self.beats = []
        self.first, self.begin = first, time.monotonic()
        self.done = threading.Event()

    def now(self):
        return self.first + time.monotonic() - self.begin

    def silence(self):
        return self.now() - (self.beats[-1] if self.beats else self.first)

    def stop(self):
        self.done.set()
        self.join()

    def run(self):
        size, next_sample = self._size(), 0
        while not self.done.wait(LOOK):
            before, size = size, self._size()
            if size > before:  # a resumed run cuts off what came after its checkpoint
                self.beats.append(self.now())
            if self.now() >= next_sample:
                next_sample = self.now() + SAMPLE
                self._sample()

    def _size(self):
        with contextlib.suppress(FileNotFoundError):
            return self.metrics.stat().st_size
        return 0

    def _sample(self):
        with open(self.file, "a", encoding="utf-8") as file:
            for pid in processes_of(self.run_folder):
                found = look_at(pid)
                who = self.name_of(pid, rank_of(pid))
                if found and who:
                    row = {"t": round(self.now(), 1), "beats": len(self.beats), "who": who, "pid": pid, **found}
                    file.write(json.dumps(row) + "\n")


def look_at(pid):
    """None: it has gone, or is about to."""
    status = read(f"/proc/{pid}/status")
    memory, threads = (re.search(rf"^{key}:\s+(\d+)", status, re.M) for key in ("VmRSS", "Threads"))
    if memory is None:
        return None
    with contextlib.suppress(OSError, IndexError):
        born = read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19]
        descriptors = sum(1 for _ in pathlib.Path(f"/proc/{pid}/fd").iterdir())
        return {"born": int(born), "rss_kib": int(memory[1]), "descriptors": descriptors, "threads": int(threads[1])}
    return None


def state_of(pid):
    """For a person who wants to know why nothing goes on."""
    words = read(f"/proc/{pid}/cmdline").replace("\0", " ")[:100]
    state = re.search(r"^State:\s+(.*)", read(f"/proc/{pid}/status"), re.M)
    return f"{pid} {state[1] if state else 'gone'}, in {read(f'/proc/{pid}/wchan') or '?'}: {words}"
