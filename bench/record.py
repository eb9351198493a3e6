"""Measurements in a JSON file, so that a benchmark that was interrupted can go on."""

import json
import os
import pathlib
import sys


class Record:
    """Lists of rows, which are in the file `path`, if there is one, as soon as they are measured."""

    def __init__(self, path, lists):
        self.path = path and pathlib.Path(path)
        self.all = {name: [] for name in lists}
        if self.path and self.path.exists():
            try:
                self.all = json.loads(self.path.read_text())
                for name in lists:
                    self.all[name]
            except (ValueError, KeyError, TypeError):
                sys.exit(f"{self.path} is no record of this benchmark; give another --out")

    def begin(self, conditions):
        """To be called before rows are added: all rows of a file are measured under the same conditions, name: value."""
        new = not any(isinstance(rows, list) and rows for rows in self.all.values())
        for name, value in conditions.items():
            if new:
                self.all[name] = value
            if name not in self.all:
                sys.exit(f"{self.path} does not say with which {name} it was measured; give another --out")
            if self.all[name] != value:
                sys.exit(f"{self.path} was measured with {name} {self.all[name]}, and this would be with {value}; give "
                         "another --out")

    def add(self, name, row):
        self.all[name].append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        if self.path:
            new = self.path.with_name(self.path.name + ".new")
            new.write_text(json.dumps(self.all, indent=1) + "\n")
            os.replace(new, self.path)
