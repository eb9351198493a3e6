"""What is in PTX, and what test programs launch of it."""

import os
import pathlib
import re
import subprocess
import time
import typing


def of_file(path):
    """The names of a file's entries, with the number of their first line and of the one after their last."""
    lines = path.read_text().splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        match = re.match(r"\S.*\.entry (\w+)", line)
        if match:
            found.append([match[1], number, len(lines) + 1])
        elif line == "}" and found:
            found[-1][2] = number + 1
    return found


def of_folder(folder):
    """The names of all entries, and the file of each."""
    return {name: path.name for path in sorted(folder.glob("*.ptx")) for name, _, _ in of_file(path)}


class Run(typing.NamedTuple):
    code: int
    output: typing.Optional[str]  # None where the time was up
    launched: set
    seconds: float


def run(program, arguments, folder, timeout=None, **environment):
    """Runs a test program on the backend cuda-ptx; the folder is for its notes."""
    notes = pathlib.Path(folder) / "launched"
    notes.unlink(missing_ok=True)
    variables = os.environ | {"DGC_TEST_BACKENDS": "cuda-ptx", "DGC_PTX_LAUNCHED": str(notes)} | environment
    start = time.monotonic()
    try:
        done = subprocess.run([str(program), *arguments], env=variables, timeout=timeout, capture_output=True, text=True,
                              errors="replace", check=False)
        code, output = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, output = -1, None
    launched = set(notes.read_text().split()) if notes.exists() else set()
    return Run(code, output, launched, time.monotonic() - start)
