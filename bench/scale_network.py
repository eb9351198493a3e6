"""The time of a collective on a modelled network.

A message takes latency + bytes / bandwidth (Hockney, "The communication challenge for MPP: Intel Paragon and Meiko
CS-2", Parallel Computing 20, 1994) and an overhead of the processor's (o of LogP: Culler et al., PPoPP 1993).
All-gathers are those of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
IJHPCA 19, 2005.

Sizes are bytes of payload; a frame adds headers. Every link is full duplex, every worker has one of its own.
"""

import dataclasses
import math

FRAME, HEADERS = 1448, 66  # payload and headers of a frame: Ethernet, IPv4, TCP with timestamps
CALL = 32                  # what a rank of dgc tells each peer before the data (struct Call, src/dist/mpi_messages.h)
EAGER = 65536              # Open MPI sends so much over TCP (btl_tcp_eager_limit) before the receiver has agreed


@dataclasses.dataclass(frozen=True)
class Network:
    up_bps: float
    down_bps: float
    latency_s: float              # one way
    overhead_s: float = 0.0       # of the processors for one message: to send it and to receive another
    contention: float = 1.0       # how much longer three or more take that all send to all at once
    rack: int = 0                 # links that share a way to all others; 0: nothing is shared
    oversubscription: float = 1.0  # bandwidth of the links of a rack together over that of the way out of it

    @property
    def slower_bps(self):
        return min(self.up_bps, self.down_bps)


def wire_bytes(payload):
    return payload + HEADERS * max(1, math.ceil(payload / FRAME))


def seconds_at(bps, payload):
    return 8 * wire_bytes(payload) / bps


def link_seconds(network, payload):
    return seconds_at(network.slower_bps, payload)


def latency(network, payload):
    """Once to the receiver, or three times where its word is waited for."""
    return (3 if payload > EAGER else 1) * network.latency_s


def core_seconds(network, ranks, payload):
    """To carry one message of each rank to each rank outside its rack over what the rack shares."""
    if network.rack == 0 or ranks <= network.rack:
        return 0.0
    return (ranks - network.rack) * link_seconds(network, payload) * network.oversubscription


def direct(network, ranks, payload, messages=1):
    """Every rank sends `payload` bytes to every other at once, in so many messages; both directions are in use."""
    others = ranks - 1
    if others == 0:
        return 0.0
    link = others * link_seconds(network, payload) * (network.contention if ranks > 2 else 1)
    processor = others * messages * network.overhead_s
    return latency(network, payload) + max(link, core_seconds(network, ranks, payload), processor)


def across_one(network, ranks, payload, its_bps, their_bps, messages=2):
    """One rank sends `payload` bytes to each of the others at once, or receives as many from each. its_bps: of its
    link; their_bps: of each of the others'. Not all send to all, so that there is no contention."""
    others = ranks - 1
    link = max(others * seconds_at(its_bps, payload), seconds_at(their_bps, payload))
    return latency(network, payload) + max(link, others * messages * network.overhead_s)


def ring(network, ranks, payload):
    """All-gather: in each of ranks - 1 rounds a rank passes one part on to its neighbour. Of a rack's links one leads
    out, so that sharing the way out costs nothing."""
    return (ranks - 1) * (network.latency_s + network.overhead_s + link_seconds(network, payload))


def doubling(network, ranks, payload):
    """All-gather in ceil(log2(ranks)) rounds: recursive doubling, Bruck's algorithm where ranks is no power of two, and
    the parallel aggregated trees of NCCL. The later rounds lead out of every rack."""
    rounds = math.ceil(math.log2(ranks))
    carried = max((ranks - 1) * link_seconds(network, payload), core_seconds(network, ranks, payload))
    return rounds * (network.latency_s + network.overhead_s) + carried


class Mpi:
    """dgc's communicator over MPI: it uses none of MPI's collectives, but sends and receives between all pairs, with
    a message before the data (src/dist/mpi.cpp)."""

    name = "mpi"

    @staticmethod
    def gather(network, ranks, payload):
        return direct(network, ranks, payload + CALL, messages=2)

    shards = gather


class Nccl:
    """dgc's communicator over NCCL: shards between all pairs, and NCCL's all-gather, of which the quicker of its two
    algorithms is taken (the trees need one GPU to a machine)."""

    name = "nccl"

    @staticmethod
    def gather(network, ranks, payload):
        return min(ring(network, ranks, payload), doubling(network, ranks, payload))

    @staticmethod
    def shards(network, ranks, payload):
        return direct(network, ranks, payload)


class MpiCollectives(Mpi):
    """What dgc would take if its all-gather over MPI were the library's: by the sizes at which MPICH changes the
    algorithm (Thakur et al., section 4.1). Nobody has built this."""

    name = "mpi-collectives"

    @staticmethod
    def gather(network, ranks, payload):
        whole = ranks * payload
        power_of_two = ranks & (ranks - 1) == 0
        short = whole < 512 * 1024 if power_of_two else whole < 80 * 1024
        return (doubling if short else ring)(network, ranks, payload)


COMMUNICATORS = {kind.name: kind for kind in (Mpi, Nccl, MpiCollectives)}
