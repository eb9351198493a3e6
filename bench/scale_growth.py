"""What grows with the number of workers N, as the source has it: counted for a model's sizes, a rank to each worker."""

import scale_hub
import scale_step
import tables

SEAL = 16                       # of a frame (kSealBytes, src/dist/meeting/handshake.h)
FRAME = 512 + SEAL + 2 * 66     # a heartbeat (struct WatchFrame), its headers and those of TCP's answer
BEATS_S = 1                     # with exchange.failure_timeout_s of 10 or more
LOOKS_S = 50                    # rest() of src/dist/meeting/watch_thread.h, with a timeout of 2 s or more
POLL_S = {1024: 92e-6, 4096: 762e-6}  # of N - 1 sockets, and a read: docs/results.md
MEETING = 2 * 48 + 2 * 512 + 1024 + 3 * SEAL  # two of Greeting; Hello, Reply, WatchPlace


def mib(number):
    return f"{number / 2**20:,.1f} MiB" if number >= 2**18 else f"{number / 1024:,.1f} KiB"


def looks(n):
    """How often rank 0 looks at its peers in a second, at most: once for a beat, until that is too often."""
    return min(BEATS_S * (n - 1), LOOKS_S)


def messages_kept(sizes, n):
    """All workers' messages on each rank, as long as "auto" sends messages; a masked sum keeps two arenas."""
    if scale_step.automatic(sizes, "gather", n) == "gather":
        return n * sizes.message
    return 8 * sizes.compressed


def split_kept(sizes, n):
    return 2 * n * sizes.row(n) + n * sizes.owners_message[n] + 2 * 4 * sizes.compressed // n


# (what, where, growth per rank, what is counted for N)
ITEMS = [
    ("heartbeat: connections of rank 0", "dist/meeting/watch_thread", "N", lambda s, n: f"{n - 1:,}"),
    ("heartbeat: traffic of rank 0, each way", "dist/meeting/watch_thread", "N",
     lambda s, n: f"{8 * (n - 1) * FRAME * BEATS_S / 1e6:,.1f} Mbps"),
    ("heartbeat: entries that rank 0's poll looks at per second, at most", "dist/meeting/watch_thread", "N",
     lambda s, n: f"{looks(n) * (n - 1):,}"),
    ("heartbeat: of a processor, these polls, modelled from measured ones", "dist/meeting/watch_thread", "above N",
     lambda s, n: f"{looks(n) * POLL_S[n]:.1%}"),
    ("meeting: bytes through rank 0, once", "dist/meeting/rendezvous_tcp", "N", lambda s, n: mib((n - 1) * MEETING)),
    ("meeting: entries that poll looks at, once, at most", "dist/meeting/rendezvous_tcp", "N^2", lambda s, n: f"{n * n:,}"),
    ("MPI over TCP: connections of every rank", "dist/mpi", "N", lambda s, n: f"{n - 1:,}"),
    ("MPI: messages that a rank sends in a step of all-gather", "dist/mpi", "N", lambda s, n: f"{4 * 2 * (n - 1):,}"),
    ("norms and losses on every rank", "optim/step_record", "N", lambda s, n: mib(3 * scale_step.SHARE * n)),
    ("messages kept, all-gather with \"auto\"", "optim/dgc/messages", "N, then 1",
     lambda s, n: mib(messages_kept(s, n))),
    ("messages kept, all-gather with \"sparse\"", "optim/dgc/messages", "N", lambda s, n: mib(n * s.message)),
    ("rows and messages kept, split and reduce", "optim/dgc/split_reduce", "1 + N / k",
     lambda s, n: mib(split_kept(s, n))),
    ("entries added up by dgc_apply, all-gather", "kernels/cpu/dgc_apply", "N k", lambda s, n: f"{n * s.entries:,}"),
    ("entries added up, split and reduce: of a shard, then of all", "kernels/dgc_deal", "k",
     lambda s, n: f"{3 * s.entries:,}"),
    ("wait: messages that rank 0 sends in a round", "train/steps/round_hub", "N^2",
     lambda s, n: f"{n * (n - 1):,} of {mib(scale_hub.message(s))}"),
    ("wait: messages in rank 0's memory, unread ones included, at most", "train/steps/uneven_steps", "N",
     lambda s, n: mib(scale_hub.messages_kept(s, n))),
    ("1-D tensors in fp32: bytes received in a step", "optim/ordered_reduce", "1",
     lambda s, n: mib(8 * (n - 1) * s.small / n)),
    ("1-D tensors with dense_fp16: bytes received in a step", "optim/dgc/dense_sum", "1",
     lambda s, n: mib(6 * (n - 1) * s.small / n)),
    ("files of a checkpoint, of all ranks together", "train/rank_state", "N",
     lambda s, n: f"{n:,} of {mib(8 * s.parameters)}"),
]


def print_growth(sizes, counts):
    tables.head("what", "where", "grows with", *(f"N = {n:,}" for n in counts))
    for what, where, growth, counted in ITEMS:
        tables.row(what, f"`{where}`", growth, *(counted(sizes, n) for n in counts))
