"""What soak makes of what it saw: which fault comes when, what grew, how long training stood still, and the tables."""

import bisect
import collections
import dataclasses
import random
import statistics

import tables

SETTLED = 20  # seconds of training after which memory, descriptors and threads should stay as they are
FEWEST = 9    # samples by which a life is judged
SHARE, ABOVE = 0.05, 2048  # memory has grown when it is so much more, and by more than so many KiB
QUANTITIES = {"rss_kib": "memory", "descriptors": "descriptors", "threads": "threads"}


def schedule(kinds, seconds, seed):
    """[(second, kind, seed of its own)]: one fault in every minute, each kind as often as every other, in no order."""
    rng = random.Random(seed)
    faults, deck = [], []
    for minute in range(int(seconds // 60)):
        deck = deck or rng.sample(kinds, len(kinds))
        faults.append((60 * minute + rng.uniform(0, 60), deck.pop(), rng.getrandbits(32)))
    return faults


def longest_pause(beats, begin, end):
    """The longest time without a beat between begin and end; beats are in order. A pause that begins before counts from
    begin."""
    inside = beats[bisect.bisect_right(beats, begin):bisect.bisect_left(beats, end)]
    times = [begin, *inside, end]
    return max(after - before for before, after in zip(times, times[1:]))


@dataclasses.dataclass
class Life:
    """Samples of one process, in order: dictionaries with t (seconds), beats (how many there had been) and
    QUANTITIES."""
    who: str
    samples: list

    def settled(self):
        """The samples from SETTLED seconds after the training's first beat in this life: on a busy machine a process
        may take long to begin."""
        begun = [sample["t"] for sample in self.samples if sample["beats"] > self.samples[0]["beats"]]
        return [sample for sample in self.samples if begun and sample["t"] >= begun[0] + SETTLED]

    def median(self, quantity):
        return statistics.median(sample[quantity] for sample in self.settled())


def lives_of(samples):
    found = collections.defaultdict(list)
    for sample in samples:
        found[sample["who"], sample["pid"], sample["born"]].append(sample)  # a pid may come again
    return [Life(who, rows) for (who, *_), rows in found.items()]


def thirds(values):
    """Medians of the first and the last third."""
    count = len(values) // 3
    return statistics.median(values[:count]), statistics.median(values[-count:])


def has_grown(quantity, first, last):
    if quantity == "rss_kib":
        return last > first * (1 + SHARE) + ABOVE
    return last > first


def growth(samples):
    """Rows of what was compared: {who, what, quantity, first, last, grown}. Each process for itself, of which the row
    shows the one that grew most, and all processes of a rank one after another."""
    rows = []
    by_who = collections.defaultdict(list)
    for life in lives_of(samples):
        by_who[life.who].append(life)
    for who, lives in sorted(by_who.items()):
        judged = [life for life in lives if len(life.settled()) >= FEWEST]
        for quantity in QUANTITIES:
            if judged:
                ends = [thirds([sample[quantity] for sample in life.settled()]) for life in judged]
                first, last = max(ends, key=lambda pair: pair[1] - pair[0])
                rows.append(row(who, f"in one of {len(judged)} lives", quantity, first, last))
            medians = [life.median(quantity) for life in lives if life.settled()]
            if len(medians) >= 6:
                rows.append(row(who, f"over {len(medians)} lives", quantity, *thirds(medians)))
    return rows


def row(who, what, quantity, first, last):
    return {"who": who, "what": what, "quantity": quantity, "first": first, "last": last,
            "grown": has_grown(quantity, first, last)}


def print_faults(faults):
    """Of rows with kind, restarts, pause (seconds)."""
    tables.head("fault", "times", "restarts of the training", "longest time without a new row: median, most")
    for kind in sorted({fault["kind"] for fault in faults}):
        mine = [fault for fault in faults if fault["kind"] == kind]
        pauses = [fault["pause"] for fault in mine]
        restarts = sum(fault["restarts"] for fault in mine)
        tables.row(kind, len(mine), restarts, f"{statistics.median(pauses):.1f} s, {max(pauses):.1f} s")


def print_growth(rows):
    tables.head("process", "compared", "of", "first third", "last third", "")
    for r in rows:
        scale, unit, digits = (1024, " MiB", 1) if r["quantity"] == "rss_kib" else (1, "", 0)
        first, last = (f"{r[third] / scale:.{digits}f}{unit}" for third in ("first", "last"))
        tables.row(r["who"], r["what"], QUANTITIES[r["quantity"]], first, last, "GREW" if r["grown"] else "")
