"""How far a soak is, so that one that was interrupted can go on in the same folder."""

import json
import os
import shutil

from program import Failure
from record import read_json, write_anew


class Progress:
    """Of a soak in the folder options.out, which is made if there is none: `seconds` of faults so far, `problems`, and
    `steps` of the training, which is None until all faults have come. What cannot go on, ends the program."""

    def __init__(self, options):
        self.out = options.out
        self.file = self.out / "progress.json"
        self.asked = {"hours": options.hours, "seed": options.seed, "faults": options.faults}
        self.seconds, self.problems, self.steps = 0, [], None
        if self.file.exists():
            self._load()
        elif self.out.exists():
            raise Failure(f"{self.out} is there already, and not of a soak; give another --out")
        else:
            self.out.mkdir(parents=True)
            self.save()

    def _load(self):
        found = read_json(self.file, "record of a soak; give another --out")
        if found["asked"] != self.asked:
            asked = found["asked"]
            raise Failure(f"{self.out} is of --hours {asked['hours']:g} --seed {asked['seed']} --faults "
                          f"{','.join(asked['faults'])}; give these, or another --out")
        self.seconds, self.problems, self.steps = found["seconds"], found["problems"], found["steps"]

    def save(self):
        write_anew(self.file, json.dumps({"asked": self.asked, "seconds": self.seconds, "problems": self.problems,
                                          "steps": self.steps}))

    def keep(self, run):
        """A copy of the run's folder, in place of an older one."""
        new, old = self.out / "run.new", self.out / "run.old"
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(run, new)
        if self.kept.exists():
            os.rename(self.kept, old)
        os.rename(new, self.kept)
        shutil.rmtree(old, ignore_errors=True)
        self.save()

    @property
    def kept(self):
        return self.out / "run"
