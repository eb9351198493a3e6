"""What every program of bench/ begins with: options whose --help teaches, what it runs, and an end in order."""

import argparse
import contextlib
import importlib
import importlib.machinery
import importlib.util
import json
import math
import os
import pathlib
import shlex
import shutil
import signal
import sys
import tempfile

import processes

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
DGC = ROOT / "build" / "release" / "dgc"
NAME = pathlib.Path(sys.argv[0]).name
STOPPED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(Exception):
    """Why this program does not go on, in a sentence. Its exit code is 2 where a user can mend it, and else 1."""

    def __init__(self, text, code=2):
        super().__init__(text)
        self.code = code


def ignore_signals():
    """For the time in which children and temporary folders go: one signal is enough, and `timeout` sends two."""
    for number in STOPPED_BY:
        signal.signal(number, signal.SIG_IGN)


def stop(number, _):
    ignore_signals()
    sys.exit(128 + number)


def start(main):
    """Runs main and exits with what it returns. A signal ends it through all `with` and `finally`, so that children and
    temporary folders go first."""
    for number in STOPPED_BY:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, stop)
    try:
        sys.exit(main())
    except Failure as failure:
        code, text = failure.code, str(failure)
    except OSError as error:
        code, text = 2, f"{error.filename}: {error.strerror}" if error.filename else str(error)
    print(f"{NAME}: {text}", file=sys.stderr)
    sys.exit(code)


class Help(argparse.RawDescriptionHelpFormatter):
    """Shows the default of each option that has one."""

    def _get_help_string(self, action):
        values = action.default if isinstance(action.default, list) else [action.default]
        if not values or str(values[0]) in ("None", "False", argparse.SUPPRESS) or "default" in action.help:
            return action.help
        return f"{action.help} (default: {' '.join(map(str, values))})"


class Parser(argparse.ArgumentParser):
    """`Parser(__doc__)`: what is wrong in the options is one sentence, and exit code 2."""

    def __init__(self, description=None, **more):
        super().__init__(description=description, formatter_class=Help, **more)

    def error(self, message):
        raise Failure(f"{message}; see --help")

    def add_dgc(self):
        self.add_argument("--dgc", type=executable, default=str(DGC), metavar="PROGRAM",
                          help="dgc (default: build/release/dgc)")


def at_least(least, most=math.inf):
    """The `type` of an option that is a whole number."""
    def number(text):
        if not text.isdecimal() or not least <= int(text) <= most:
            limits = f"from {least} on" if most == math.inf else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{text}: give a whole number {limits}")
        return int(text)
    return number


positive = at_least(1)


def above_zero(text):
    """The `type` of an option, as all from here to `executable` are."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text}: give a number above 0")


def path_that(holds, complaint):
    def path(text):
        if not holds(pathlib.Path(text)):
            raise argparse.ArgumentTypeError(f"{text}: {complaint}")
        return pathlib.Path(text)
    return path


file = path_that(lambda path: path.exists() and not path.is_dir(), "there is no such file")
folder = path_that(pathlib.Path.is_dir, "there is no such folder")
new = path_that(lambda path: not path.exists(), "this is there already")
writable = path_that(lambda path: not path.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK),
                     "this file cannot be written")  # better known at the beginning


def executable(text):
    lacking = processes.lacking(text)
    if lacking is not None:
        raise argparse.ArgumentTypeError(lacking)
    return pathlib.Path(shutil.which(text)).resolve()


def settings(pairs):
    """Of KEY=VALUE: the words of dgc's --set."""
    return [word for pair in pairs for word in ("--set", pair)]


@contextlib.contextmanager
def config_file(config):
    """The name of a file with this config, while the block runs."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as written:
        json.dump(config, written)
        written.flush()
        yield written.name


def output_of(command, what=None, **more):
    """What a command prints to standard output; Failure where it fails, with what it said. what: its name then. more:
    of processes.run."""
    command = list(map(str, command))
    lacking = processes.lacking(command[0])
    if lacking is not None:
        raise Failure(lacking)
    done = processes.run(command, **more)
    said = done.stderr or ""  # None: the user has seen it
    if done.returncode == 2 and said.startswith("error: "):  # dgc's own sentence about the user's mistake
        raise Failure(said.strip().removeprefix("error: "))
    if done.returncode != 0:
        why = f"exit code {done.returncode}" if done.returncode is not None else f"not done in {more['seconds']:g} s"
        code = 2 if done.returncode == 2 and done.stderr is None else 1
        raise Failure(f"{what or shlex.join(command)}: {why}\n{said[-3000:]}".strip(), code)
    return done.stdout


def version_of(dgc):
    return output_of([dgc, "--version"]).strip()


def load(name):
    """A program of bench/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def library(name, package):
    """A module that is none of Python's own; package: Debian's that has it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise Failure(f"there is no {name.partition('.')[0]} in this Python: apt install {package}") from None


def reference(name):
    """A module of tests/reference/."""
    sys.path.insert(0, str(ROOT / "tests" / "reference"))
    return importlib.import_module(name)
