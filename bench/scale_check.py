"""The model beside what was measured: the table of "Over slow links" in docs/results.md.

A step over a shaped link is modelled as the step without a limit, which all ranks computed on the same two cores, and
the time of the links on top. Only `contention` is fitted, on the rows of CALIBRATION; all others are the check.
"""

import functools
import re
import statistics

import program
import scale_network
import scale_step
import tables

RESULTS = program.ROOT / "docs" / "results.md"
COLUMNS = {"fp32": "dense fp32", "fp16": "dense fp16", "gather": "DGC, default wire"}
CALIBRATION = {("resnet20", 4, "100 Mbps", "fp32"), ("resnet20", 4, "100 Mbps", "fp16")}
CONTENTION = 1.18  # what fitted() says of those rows, rounded
LATENCY = 50e-6    # of two network namespaces on a bridge: assumed
BITS = {"100 Mbps": 100e6, "1 Gbps": 1e9}


def measured(text):
    """By (model, ranks, link, way): ms per step."""
    section = text.split("## Over slow links", 1)[1]
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in section.splitlines()
            if line.startswith("|")]
    header, found = rows[0], {}
    for row in rows[2:]:
        if not row[1].isdigit():
            break
        model = "alexnet" if row[0].startswith("AlexNet") else "resnet20"
        for way, column in COLUMNS.items():
            cell = row[header.index(column)]
            found[model, int(row[1]), row[2], way] = float(re.sub(r"[^\d.]", "", cell))
    return found


@functools.cache
def all_sizes(dgc):
    found, config_of = {}, program.load("slow_links").config_of
    for model in ("resnet20", "alexnet"):
        with program.config_file(config_of(model, "fp32+block16")) as config:
            found[model] = scale_step.sizes_of(dgc, config, (2, 4))
    return found


def link_ms(sizes, way, ranks, link, contention):
    network = scale_network.Network(BITS[link], BITS[link], LATENCY, contention=contention)
    chosen = scale_step.automatic(sizes, way, ranks) if way == "gather" else way
    return 1e3 * scale_step.exchange_seconds(sizes, chosen, ranks, network, scale_network.Mpi)


def fitted(sizes, table):
    """The contention that the calibration's rows show."""
    ratios = []
    for model, ranks, link, way in CALIBRATION:
        over = table[model, ranks, link, way] - table[model, ranks, "no limit", way]
        ratios.append(over / link_ms(sizes[model], way, ranks, link, 1))
    return statistics.mean(ratios)


def rows(sizes, table):
    """(key, measured ms, modelled ms, relative error) of every row with a limit."""
    for key, ms in table.items():
        model, ranks, link, way = key
        if link == "no limit":
            continue
        modelled = table[model, ranks, "no limit", way] + link_ms(sizes[model], way, ranks, link, CONTENTION)
        yield key, ms, modelled, modelled / ms - 1


def print_check(dgc):
    sizes, table = all_sizes(dgc), measured(RESULTS.read_text())
    print(f"contention fitted on ResNet-20 between 4 ranks at 100 Mbps, dense: {fitted(sizes, table):.3f}; "
          f"used: {CONTENTION}\n")
    tables.head("model", "ranks", "link", "exchange", "measured, ms", "modelled, ms", "of it links", "error", "")
    within = checked = 0
    for key, ms, modelled, error in rows(sizes, table):
        model, ranks, link, way = key
        if key not in CALIBRATION:
            checked += 1
            within += abs(error) <= 0.2
        links = modelled - table[model, ranks, "no limit", way]
        tables.row(model, ranks, link, COLUMNS[way], f"{ms:,.1f}", f"{modelled:,.1f}", f"{links:,.1f}",
                   f"{100 * error:+.0f} %", "fitted" if key in CALIBRATION else "")
    print(f"\n{within} of {checked} rows that were not fitted are within 20 %")
