#!/usr/bin/python3
"""bench/scale: formulas by hand, sizes beside dgc plan, and what docs/scale.md says of its output.

    tests/bench/scale_test.py --dgc build/release/dgc
"""

import argparse
import contextlib
import dataclasses
import functools
import io
import json
import math
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH, DOCS = ROOT / "bench", ROOT / "docs"
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH))
import program  # noqa: E402
import scale_check  # noqa: E402
import scale_faults  # noqa: E402
import scale_growth  # noqa: E402
import scale_hub  # noqa: E402
import scale_network  # noqa: E402
import scale_step  # noqa: E402

RESNET20 = ROOT / "configs" / "experiments" / "resnet20_cifar10_dgc.json"
DGC = None
PLAIN = scale_network.Network(up_bps=8e6, down_bps=16e6, latency_s=0.01)  # a byte takes a microsecond on its way up


@functools.cache
def load_scale():
    return program.load("scale")


class NetworkTest(unittest.TestCase):
    def test_direct(self):
        self.assertAlmostEqual(scale_network.direct(PLAIN, 4, 1000), 0.01 + 3 * 1066e-6)
        self.assertAlmostEqual(scale_network.direct(PLAIN, 2, 1449), 0.01 + 1581e-6)  # two frames
        self.assertAlmostEqual(scale_network.direct(PLAIN, 2, 65537), 0.03 + (65537 + 46 * 66) * 1e-6)
        self.assertEqual(scale_network.direct(PLAIN, 1, 1000), 0)

    def test_all_gathers(self):
        self.assertAlmostEqual(scale_network.ring(PLAIN, 5, 1000), 4 * (0.01 + 1066e-6))
        self.assertAlmostEqual(scale_network.doubling(PLAIN, 8, 1000), 3 * 0.01 + 7 * 1066e-6)
        self.assertAlmostEqual(scale_network.doubling(PLAIN, 5, 1000), 3 * 0.01 + 4 * 1066e-6)
        mpich = scale_network.MpiCollectives
        self.assertEqual(mpich.gather(PLAIN, 8, 65535), scale_network.doubling(PLAIN, 8, 65535))
        self.assertEqual(mpich.gather(PLAIN, 8, 65536), scale_network.ring(PLAIN, 8, 65536))

    def test_the_slower_of_links_core_and_processors(self):
        slow_core = scale_network.Network(8e6, 8e6, 0.0, rack=2, oversubscription=4)
        self.assertAlmostEqual(scale_network.direct(slow_core, 6, 934), 4 * 4 * 1e-3)
        self.assertAlmostEqual(scale_network.direct(slow_core, 2, 934), 1e-3)
        busy = scale_network.Network(8e6, 8e6, 0.0, overhead_s=0.1)
        self.assertAlmostEqual(scale_network.direct(busy, 6, 934, messages=2), 5 * 2 * 0.1)
        crowded = scale_network.Network(8e6, 8e6, 0.0, contention=1.5)
        self.assertAlmostEqual(scale_network.direct(crowded, 3, 934), 3e-3)
        self.assertAlmostEqual(scale_network.direct(crowded, 2, 934), 1e-3)  # nobody is in the way of two

    def test_one_rank_and_all_others(self):
        self.assertAlmostEqual(scale_network.across_one(PLAIN, 4, 934, 8e6, 16e6), 0.01 + 3e-3)
        self.assertAlmostEqual(scale_network.across_one(PLAIN, 4, 934, 80e6, 8e6), 0.01 + 1e-3)
        self.assertAlmostEqual(scale_network.across_one(PLAIN, 2, 65537, 8e6, 8e6), 0.03 + (65537 + 46 * 66) * 1e-6)
        busy = scale_network.Network(8e6, 8e6, 0.0, overhead_s=0.1)
        self.assertAlmostEqual(scale_network.across_one(busy, 6, 934, 8e6, 8e6), 5 * 2 * 0.1)

    def test_waits(self):
        self.assertEqual(scale_faults.slowest(1, 0.1), 1)
        self.assertAlmostEqual(scale_faults.slowest(2, 0.1), 1.0589, 3)  # exact: 1 + 0.1 / sqrt(pi) = 1.0564
        self.assertAlmostEqual(scale_faults.interval_s(800, 1), 40)
        self.assertAlmostEqual(scale_faults.lost_share(800, 1, 20), 1 / 40 + 40 / 800)


class StepTest(unittest.TestCase):
    def test_a_split_is_as_dgc_plan_counts_it(self):
        sizes = scale_step.sizes_of(DGC, RESNET20, (2, 8, 64, 512))
        self.assertEqual((sizes.parameters, sizes.small), (269722, 1386))
        for workers, message in sizes.owners_message.items():
            shard = -(-sizes.compressed // (32 * workers)) * 32
            entries = max(1, sizes.entries // workers)
            payload = 4 * -(-shard // 65536) + -(-2 * entries // 4) * 4 + 4 * entries
            self.assertEqual(message, 48 + -(-payload // 16) * 16, workers)

    def test_the_masked_sum_is_taken_where_dgc_plan_takes_it(self):
        sizes = scale_step.sizes_of(DGC, RESNET20, (8,), split=False)
        turn = next(n for n in range(2, 5000) if scale_step.automatic(sizes, "gather", n) == "masked")
        text = program.output_of([DGC, "plan", RESNET20, "--workers", f"{turn - 1},{turn}", "--set",
                                  "optimizer.sparsity=0.999"])
        self.assertEqual(re.findall(r"99\.9 %.*  (\w+)", text), ["sparse", "dense"])

    def test_a_sparsity_of_its_own(self):
        entries = [load_scale().shortest_sizes(DGC, sparsity).entries for sparsity in (0.99, 0.999)]
        self.assertAlmostEqual(entries[0] / entries[1], 10, delta=0.2)

    def test_what_a_step_sends(self):
        sizes = scale_step.Sizes(parameters=3200, small=160, entries=300, message=2000, owners_message={10: 240})
        kinds = lambda way: [(kind, size) for kind, size, _ in scale_step.collectives(sizes, way, 10)]  # noqa: E731
        small = [("shards", 64), ("gather", 64)]
        self.assertEqual(kinds("fp32"), [("gather", 40), ("shards", 1280), ("gather", 1280)])
        self.assertEqual(kinds("gather"), [("gather", 40), ("gather", 2000), *small])
        self.assertEqual(kinds("masked"), [("gather", 40), ("shards", 1216), ("gather", 1216), *small])
        self.assertEqual(kinds("split"), [("gather", 40), ("shards", 512), ("gather", 240), *small])


class HubTest(unittest.TestCase):
    SIZES = scale_step.Sizes(parameters=3200, small=160, entries=300, message=2000, owners_message={})  # 2,640 in all

    def test_letters(self):
        self.assertEqual(scale_hub.letters(self.SIZES, 3), (66, 43 + 3 * 44, 2649, 26 + 3 * 2644))

    def test_everything_crosses_rank_0(self):
        rank0 = scale_network.Network(up_bps=8e6, down_bps=8e6, latency_s=0.01)
        letter = lambda payload: (payload + 16 + 66 * math.ceil((payload + 16) / 1448)) * 1e-6  # noqa: E731
        parts = scale_hub.parts(self.SIZES, 3, PLAIN, rank0)
        self.assertAlmostEqual(parts["norms and losses"], 0.02 + 2 * letter(66) + 2 * letter(175))
        self.assertAlmostEqual(parts["messages to rank 0"], 0.01 + 2 * letter(2649))
        self.assertAlmostEqual(parts["messages from rank 0"], 0.01 + 2 * letter(7958))
        quick = scale_network.Network(up_bps=8e9, down_bps=8e9, latency_s=0.01)
        parts = scale_hub.parts(self.SIZES, 3, PLAIN, quick)  # then the others' links are what takes time
        self.assertAlmostEqual(parts["messages to rank 0"], 0.01 + letter(2649))
        self.assertAlmostEqual(parts["messages from rank 0"], 0.01 + letter(7958) / 2)

    def test_what_lies_in_rank_0s_memory(self):
        self.assertEqual(scale_hub.messages_kept(self.SIZES, 10), 20 * 2640 + 2**24)
        large = dataclasses.replace(self.SIZES, parameters=10**8)
        self.assertEqual(scale_hub.messages_kept(large, 10), 20 * 2640 + 8 * 10**8)

    def test_most_ranks(self):
        most = load_scale().most_ranks
        self.assertEqual(most(lambda ranks: ranks * (ranks - 1), 20), 5)
        self.assertEqual(most(lambda ranks: ranks, 1), 1)
        self.assertEqual(most(lambda ranks: 0, 1), 4096)


class GrowthTest(unittest.TestCase):
    def test_rank_0_looks_at_its_peers_once_for_a_beat_or_50_times_a_second(self):
        self.assertEqual([scale_growth.looks(n) for n in (2, 51, 52, 4096)], [1, 50, 50, 50])


class CheckTest(unittest.TestCase):
    def test_the_rows_that_are_off_are_those_that_the_docs_name(self):
        table = scale_check.measured(scale_check.RESULTS.read_text())
        self.assertEqual(len(table), 36)
        off = {key for key, _, _, error in scale_check.rows(scale_check.all_sizes(DGC), table) if abs(error) > 0.2}
        self.assertEqual(off, {("alexnet", 4, "1 Gbps", "fp32"), ("resnet20", 2, "1 Gbps", "fp16")})


class RecordTest(unittest.TestCase):
    def test_every_worker_has_chosen_as_many(self):
        for record in json.loads((BENCH / "overlaps.json").read_text()).values():
            self.assertTrue(record["rows"])
            entries = {sum(n * count for n, count in enumerate(row["chosen_by"], 1)) for row in record["rows"]}
            self.assertTrue(all(number % record["workers"] == 0 for number in entries))

    def test_shares_of_fewer_workers_by_hand(self):
        union = load_scale().union_share
        self.assertAlmostEqual(union([2, 1], 2), 3 / 4)  # two workers, two entries each, one in common
        self.assertAlmostEqual(union([2, 1], 1), 1)
        self.assertAlmostEqual(union([0, 3, 0], 2), 3 / 4)  # three elements, each chosen by two of three workers


def first_table(text):
    return re.search(r"(?:^\|.*\n)+", text, re.M)[0].splitlines()


class DocsTest(unittest.TestCase):
    def test_tables_are_what_the_commands_print(self):
        scale, text = load_scale(), (DOCS / "scale.md").read_text()
        commands = re.findall(r"^`bench/scale ([^`]+)`$", text, re.M)
        self.assertEqual({command.split()[0] for command in commands}, {
            "check", "cluster", "growth", "homes", "local_steps", "models", "overlaps", "uneven", "waits"})
        for command in commands:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                scale.main(["--dgc", str(DGC), *command.split()])
            _, behind = text.split(f"\n`bench/scale {command}`\n")
            self.assertEqual(first_table(behind), first_table(printed.getvalue()),
                             f"docs/scale.md has not what bench/scale {command} prints")

    def test_pictures_are_what_the_script_draws(self):
        with tempfile.TemporaryDirectory() as folder:
            load_scale().main(["--dgc", str(DGC), "pictures", folder])
            drawn = sorted(pathlib.Path(folder).iterdir())
            self.assertEqual(len(drawn), 3)
            for picture in drawn:
                xml.etree.ElementTree.parse(picture)
                self.assertEqual(picture.read_text(), (DOCS / "images" / picture.name).read_text(), picture.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dgc", type=pathlib.Path, default=ROOT / "build" / "release" / "dgc")
    known, others = parser.parse_known_args()
    DGC = known.dgc
    unittest.main(argv=[sys.argv[0], *others])
