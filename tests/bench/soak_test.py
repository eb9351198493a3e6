#!/usr/bin/python3
"""What bench/soak decides without a training: when which fault comes, what counts as a pause, what as growth, and what
an interrupted one goes on from.

    tests/bench/soak_test.py
"""

import argparse
import contextlib
import io
import os
import pathlib
import random
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH))
import program  # noqa: E402
import soak_faults  # noqa: E402
import soak_report as report  # noqa: E402
import soak_watch  # noqa: E402
from soak_progress import Progress  # noqa: E402

KINDS = list(soak_faults.FAULTS)


def life(who, pid, memory, descriptors=lambda t: 20, seconds=180, begin=0, beats=lambda t: t):
    return [{"t": begin + t, "beats": beats(t), "who": who, "pid": pid, "born": 1, "rss_kib": memory(t),
             "descriptors": descriptors(t), "threads": 4} for t in range(0, seconds, 5)]


def grown(samples):
    return [(row["who"], row["what"], row["quantity"]) for row in report.growth(samples) if row["grown"]]


class ScheduleTest(unittest.TestCase):
    def test_one_fault_in_every_minute_and_each_kind_as_often(self):
        faults = report.schedule(KINDS, 60 * 60, 1)
        self.assertEqual([int(second // 60) for second, _, _ in faults], list(range(60)))
        self.assertEqual({kind: [k for _, k, _ in faults].count(kind) for kind in KINDS}, dict.fromkeys(KINDS, 10))

    def test_the_seed_decides(self):
        self.assertEqual(report.schedule(KINDS, 900, 5), report.schedule(KINDS, 900, 5))
        self.assertNotEqual(report.schedule(KINDS, 900, 5), report.schedule(KINDS, 900, 6))


class PauseTest(unittest.TestCase):
    def test_the_longest_time_without_a_beat(self):
        beats = [1.0, 2.0, 3.0, 9.0, 10.0, 20.0]
        self.assertEqual(report.longest_pause(beats, 2.5, 15.0), 6.0)
        self.assertEqual(report.longest_pause(beats, 5.0, 15.0), 5.0)  # to the end, as from the begin to 9
        self.assertEqual(report.longest_pause(beats, 12.0, 19.0), 7.0)
        self.assertEqual(report.longest_pause([], 1.0, 4.0), 3.0)


class GrowthTest(unittest.TestCase):
    def test_what_stays_has_not_grown(self):
        self.assertEqual(grown(life("rank 0", 1, lambda t: 60000 + t % 3 * 500)), [])

    def test_the_start_of_a_process_does_not_count(self):
        self.assertEqual(grown(life("rank 0", 1, lambda t: min(60000, 3000 * t), lambda t: min(t, 20))), [])

    def test_the_start_takes_as_long_as_no_step_is_made(self):
        slow_start = [sample for t in (0, 1) for sample in life(
            "rank 0", t, lambda t: min(60000, 600 * t), seconds=400, beats=lambda t: max(7, t - 100))]
        self.assertEqual(grown(slow_start), [])
        self.assertEqual(report.growth(life("rank 0", 1, lambda t: 600 * t, beats=lambda t: 7)), [])  # never a step

    def test_memory_by_more_than_a_share_and_an_amount(self):
        self.assertEqual(grown(life("rank 0", 1, lambda t: 60000 + 100 * t)),
                         [("rank 0", "in one of 1 lives", "rss_kib")])
        self.assertEqual(grown(life("rank 0", 1, lambda t: 60000 + 10 * t)), [])
        self.assertEqual(grown(life("rank 0", 1, lambda t: 6000 + 10 * t)), [])  # a fifth, but less than 2 MiB

    def test_one_descriptor_more(self):
        self.assertEqual(grown(life("supervisor", 1, lambda t: 8000, lambda t: 20 + t // 90)),
                         [("supervisor", "in one of 1 lives", "descriptors")])

    def test_one_life_that_grew_among_others(self):
        samples = life("rank 1", 1, lambda t: 60000) + life("rank 1", 2, lambda t: 60000 + 100 * t)
        self.assertEqual(grown(samples), [("rank 1", "in one of 2 lives", "rss_kib")])

    def test_from_life_to_life(self):
        lives = [life("rank 2", pid, lambda t, pid=pid: 60000 + 4000 * pid, begin=200 * pid) for pid in range(9)]
        self.assertEqual(grown(sum(lives, [])), [("rank 2", "over 9 lives", "rss_kib")])

    def test_a_number_that_comes_again_is_another_process(self):
        second = [sample | {"born": 2} for sample in life("rank 0", 1, lambda t: 90000, begin=300)]
        self.assertEqual(grown(life("rank 0", 1, lambda t: 60000) + second), [])


class WatchTest(unittest.TestCase):
    def test_this_process(self):
        found = soak_watch.look_at(os.getpid())
        self.assertGreater(found["rss_kib"], 1000)
        self.assertGreaterEqual(found["descriptors"], 3)
        self.assertGreaterEqual(found["threads"], 1)
        self.assertIn(f"{os.getpid()} R", soak_watch.state_of(os.getpid()))

    def test_a_process_that_has_gone(self):
        self.assertIsNone(soak_watch.look_at(2**30))


class FaultsTest(unittest.TestCase):
    """The ones that need neither ranks nor root."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clocks = [pathlib.Path(folder.name, f"clock{machine}") for machine in range(3)]
        for file in self.clocks:
            soak_faults.set_clock(file, 0)
        self.acts = []
        links = type("Links", (), {"ranks": 3, "cut": lambda _, machine: self.acts.append(("cut", machine)),
                                   "join": lambda _, machine: self.acts.append(("join", machine)),
                                   "shape_one": lambda _, machine, bps: self.acts.append((bps, machine))})()
        self.site = soak_faults.Site(links, 1000, pathlib.Path(folder.name, "run"), self.clocks,
                                     lambda seconds: self.acts.append(seconds))

    def test_links(self):
        soak_faults.down(self.site, random.Random(1))
        soak_faults.slow(self.site, random.Random(1))
        machine = random.Random(1).randrange(3)
        self.assertEqual(self.acts, [("cut", machine), 20, ("join", machine), (50_000, machine), 20, (1000, machine)])

    def test_clocks_step_from_where_they_are(self):
        for seed in range(20):
            before = [int(file.read_text()) for file in self.clocks]
            soak_faults.clock(self.site, random.Random(seed))
            after = [int(file.read_text()) for file in self.clocks]
            steps = [b - a for a, b in zip(before, after) if a != b]
            self.assertEqual(len(steps), 1)
            self.assertIn(steps[0], soak_faults.CLOCK_STEPS)

    def test_nobody_to_hit(self):
        self.assertIn("no rank lives", soak_faults.kill(self.site, random.Random(1)))
        self.assertIn("no rank lives", soak_faults.stop(self.site, random.Random(1)))


class ProgressTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name, "out")

    def progress(self, **options):
        return Progress(argparse.Namespace(**{"out": self.out, "hours": 3, "seed": 1, "faults": ["kill"], **options}))

    def test_goes_on_where_it_was(self):
        first = self.progress()
        self.assertEqual((first.seconds, first.problems, first.steps), (0, [], None))
        first.seconds = 71.5
        first.problems.append("left over: 7")
        first.save()
        second = self.progress()
        self.assertEqual((second.seconds, second.problems, second.steps), (71.5, ["left over: 7"], None))

    def test_keeps_the_newest_run_alone(self):
        progress = self.progress()
        for text in ("first", "second"):
            run = self.out.parent / text
            run.mkdir()
            (run / text).touch()
            progress.keep(run)
        self.assertEqual([file.name for file in progress.kept.iterdir()], ["second"])
        self.assertEqual(sorted(file.name for file in self.out.iterdir()), ["progress.json", "run"])

    def test_refuses_what_is_not_its_own(self):
        self.progress()
        with self.assertRaisesRegex(program.Failure, "is of --hours 3 --seed 1 --faults kill; give these, or another --out"):
            self.progress(seed=2)
        (self.out / "progress.json").unlink()
        with self.assertRaisesRegex(program.Failure, "is there already, and not of a soak; give another --out"):
            self.progress()


class OptionsTest(unittest.TestCase):
    def test_kinds(self):
        soak = program.load("soak")
        self.assertEqual(soak.kinds("down,kill,down"), ["down", "kill"])
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(Exception, "flood: there are kill,stop"):
            soak.kinds("kill,flood")


if __name__ == "__main__":
    unittest.main()
