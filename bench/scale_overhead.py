"""What a message between two ranks costs the processors: the time that the processes of short runs have computed.

Of R ranks each sends 2 (R - 1) messages in each of the four collectives of a step: a call, then the data. What as many
workers in one rank take is computing, and is taken off. What is left holds the polling of ranks that wait too. So each
figure is a bound from above, and a machine that does other work makes it useless where ranks wait long.
"""

import resource

import tables
from processes import MPIRUN
from program import HERE, output_of, settings

STEPS = (20, 70)
KEYS = ("exchange.overlap=off", "exchange.transport=sparse", "optimizer.warmup.epochs=0", "check_replicas_every=0")


def messages(ranks):
    return 4 * 2 * ranks * (ranks - 1)


def processor_seconds(dgc, ranks, workers_per_rank, steps):
    def used():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime
    before = used()
    sets = settings([*KEYS, f"workers_per_rank={workers_per_rank}"])
    output_of([*MPIRUN, "-n", ranks, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", dgc, "bench", "train",
               HERE / "tiny.json", *sets, "--json", "--warmup", 1, "--steps", steps, "--repeats", 1])
    return used() - before


def step_seconds(dgc, ranks, workers_per_rank):
    """Of all ranks together."""
    few, many = (processor_seconds(dgc, ranks, workers_per_rank, steps) for steps in STEPS)
    stretches = 2  # dgc bench train makes its steps once more, unrecorded
    return (many - few) / (stretches * (STEPS[1] - STEPS[0]))


def print_overhead(dgc, counts):
    tables.head("ranks", "processors, ms per step of all ranks", "of them computing",
                "us per message, sent and received")
    for ranks in counts:
        apart, together = step_seconds(dgc, ranks, 1), step_seconds(dgc, 1, ranks)
        each = (apart - together) / messages(ranks)
        tables.row(ranks, f"{1e3 * apart:.1f}", f"{1e3 * together:.1f}", f"{1e6 * each:.1f}")
