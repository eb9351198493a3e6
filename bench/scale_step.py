"""What dgc sends in a step, as collectives, and how long they take on a network (scale_network.py).

Sizes are those that `dgc plan` prints; only the row of a split is counted here, as src/optim/dgc/split_layout.cpp does.
"""

import dataclasses
import re

import scale_network
from program import output_of, settings

SHARE = 40                # norms and losses of a worker (struct WorkerShare)
SPARSITY = 0.999
GROUP = 8
WAYS = {
    "fp32": "dense fp32", "fp16": "dense fp16", "gather": "DGC, all-gather", "masked": "DGC, masked sum",
    "groups": f"DGC, groups of {GROUP}", "split": "DGC, split and reduce",
    "groups_split": f"DGC, groups of {GROUP}, split",
}
PARTIAL = ("split", "groups_split")  # these apply k sums in a step; all others whatever the workers have selected
INSIDE = scale_network.Network(up_bps=200e9, down_bps=200e9, latency_s=5e-6, overhead_s=2e-6)  # of a machine: assumed


@dataclasses.dataclass(frozen=True)
class Sizes:
    parameters: int
    small: int             # parameters in 1-D tensors, which travel dense
    entries: int           # k, of one message
    message: int           # bytes
    owners_message: dict   # by number of workers: bytes of an owner's message after a split

    @property
    def compressed(self):
        return self.parameters - self.small

    def row(self, workers):
        """Bytes that a worker sends to an owner."""
        shard = -(-self.compressed // (32 * workers)) * 32
        room = min(max(2 * self.entries // workers, 1), shard)
        return 4 * ((2 * room + 15) // 16 * 16)


def sent_by_workers(text):
    """By number of workers: what each sends in a step of the last phase."""
    found = {}
    for count, phases in re.findall(r"travels between (\d+) .*\n.*ratio.*\n((?:  +\S+ %.*\n?)+)", text):
        found[int(count)] = int(phases.splitlines()[-1].split()[2])
    return found


def sizes_of(dgc, config, workers, keys=(), split=True):
    """keys: of the config, as KEY=VALUE. split: also asks for the messages of a split, which not every wire allows."""
    plan = [dgc, "plan", config, "--workers", ",".join(map(str, workers)),
            *settings(["exchange.transport=sparse", f"optimizer.sparsity={SPARSITY}", *keys])]
    text = output_of(plan)
    total = re.search(r"^total +(\d+) +\S+ +(\d+) ", text, re.M)
    small = sum(map(int, re.findall(r" (\d+) +\d+\.\d+ +dense ", text)))
    sizes = Sizes(parameters=int(total[1]), small=small, entries=int(total[2]),
                  message=sent_by_workers(text)[workers[0]] - 4 * small, owners_message={})
    if not split:
        return sizes
    sent = sent_by_workers(output_of([*plan, "--set", "exchange.algorithm=split_reduce"]))
    return dataclasses.replace(sizes, owners_message={n: sent[n] - 4 * small - n * sizes.row(n) for n in workers})


def received(sizes, way, workers):
    """Bytes of what is compressed that a worker receives; with one of the dense ways, of everything."""
    others = workers - 1
    if way == "fp32":
        return 8 * others * sizes.parameters / workers
    if way == "fp16":
        return 4 * others * sizes.parameters / workers
    if way == "gather":
        return others * sizes.message
    if way == "masked":
        return 8 * others * sizes.compressed / workers
    return others * (sizes.row(workers) + sizes.owners_message[workers])


def automatic(sizes, way, workers):
    """What exchange.transport "auto" makes of all-gather or split: a masked sum where a worker then receives less."""
    return "masked" if received(sizes, way, workers) > received(sizes, "masked", workers) else way


def collectives(sizes, way, workers):
    """(kind, bytes of a part, what it carries) in the order of a step, between that many workers with a rank each."""
    def summed(numel, element_bytes, what):
        part = element_bytes * -(-numel // (16 * workers)) * 16
        return [("shards", part, what), ("gather", part, what)]

    shares = [("gather", SHARE, "norms and losses")]
    if way in ("fp32", "fp16"):
        return shares + summed(sizes.parameters, 4 if way == "fp32" else 2, "gradients")
    small = summed(sizes.small, 4, "1-D tensors") if sizes.small else []
    if way == "gather":
        return shares + [("gather", sizes.message, "messages")] + small
    if way == "masked":
        return shares + summed(sizes.compressed, 4, "masked sum") + small
    return shares + [("shards", sizes.row(workers), "rows"),
                     ("gather", sizes.owners_message[workers], "owners' messages")] + small


def parts(sizes, way, workers, network, communicator):
    """Seconds by what is carried. With groups, every group is a machine with one link and one rank that exchanges; what
    its workers add up before crosses the machine alone."""
    if way.startswith("groups"):
        groups = workers // GROUP
        inner = "split" if way == "groups_split" else automatic(sizes, "gather", groups)
        inside = sum(scale_network.direct(INSIDE, GROUP, 4 * sizes.parameters / GROUP) for _ in range(2))
        return {"inside the machine": inside} | parts(sizes, inner, groups, network, communicator)
    seconds = {}
    for kind, payload, what in collectives(sizes, way, workers):
        seconds[what] = seconds.get(what, 0) + getattr(communicator, kind)(network, workers, payload)
    return seconds


def exchange_seconds(sizes, way, workers, network, communicator):
    return sum(parts(sizes, way, workers, network, communicator).values())
