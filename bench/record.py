"""Measurements in a JSON file, so that a benchmark that was interrupted can go on."""

import json
import os
import pathlib
import platform
import re
import sys

from program import Failure, version_of


def write_anew(path, text):
    """In place of what the file held, all at once."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def read_json(path, what):
    """A JSON object; what: that this program had written there."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    except ValueError:
        pass
    raise Failure(f"{path} is no {what}")


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"cpu": cpu[1] if cpu else platform.machine(), "cores": os.cpu_count(), "kernel": platform.release()}


class Record:
    """Lists of rows, which are in the file `path`, if there is one, as soon as they are measured."""

    def __init__(self, path, lists):
        self.path = path
        self.all = {name: [] for name in lists}
        if path and path.exists():
            self.all = read_json(path, "record of this benchmark; give another --out")
            if not all(isinstance(self.all.get(name), list) for name in lists):
                raise Failure(f"{path} is no record of this benchmark; give another --out")

    def begin(self, dgc):
        """To be called before rows are added: all rows of a file are measured on one machine with one program."""
        self.under({"machine": machine(), "dgc": version_of(dgc)})

    def under(self, conditions):
        """All rows of a file are measured under the same conditions, name: value."""
        new = not any(isinstance(rows, list) and rows for rows in self.all.values())
        for name, value in conditions.items():
            if new:
                self.all[name] = value
            if name not in self.all:
                raise Failure(f"{self.path} does not say with which {name} it was measured; give another --out")
            if self.all[name] != value:
                raise Failure(f"{self.path} was measured with {name} {self.all[name]}, and this would be with {value}; "
                              "give another --out")

    def add(self, name, row):
        self.all[name].append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        if self.path:
            write_anew(self.path, json.dumps(self.all, indent=1) + "\n")
