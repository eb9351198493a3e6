"""What slow_links says of its points: a table, the comparison with dgc plan, and a picture."""

import functools
import re

import program
import tables

TITLES = {"resnet20": "ResNet-20, 0.27 M parameters", "alexnet": "AlexNet, 61 M parameters"}
COLUMNS = {"dense+fp32": 0, "dense+fp16": 1}  # of dgc plan's projection; else the third


class Plans:
    """What dgc plan says of a point."""

    def __init__(self, dgc, config_of):
        self.dgc = dgc
        self.config_of = config_of

    def _run(self, model, variant, *arguments):
        with program.config_file(self.config_of(model, variant)) as config:
            return program.output_of([self.dgc, "plan", config, *arguments])

    @functools.cache
    def sent_bytes(self, model, variant, ranks):
        """By each worker per step."""
        out = self._run(model, variant, "--workers", ranks)
        if variant in COLUMNS:
            return int(re.search(r"^(\d+) parameters", out, re.M)[1]) * (4 >> COLUMNS[variant])
        return int(re.search(r"^  sparsity.*\n  \S+ %\s+(\d+)", out, re.M)[1])

    def step_ms(self, row, unshaped_ms):
        out = self._run(row["model"], row["variant"], "--workers", row["ranks"], "--bandwidth", row["rate"],
                        "--step-ms", unshaped_ms)
        numbers = re.search(rf"^ +{row['ranks']}((?: +\S+){{6}})  ", out, re.M)[1].split()
        return float(numbers[2 * COLUMNS.get(row["variant"], 2)])


def name_of(variant):
    if variant in COLUMNS:
        return variant.replace("+", " ")
    return f"DGC {variant}"


def print_table(rows, plans):
    tables.head("model", "ranks", "link", "exchange", "sent per worker and step", "ms per step",
                "times as fast as dense fp32")
    dense = {(r["model"], r["ranks"], r["rate"]): r["ms_per_step"] for r in rows if r["variant"] == "dense+fp32"}
    for r in rows:
        base = dense.get((r["model"], r["ranks"], r["rate"]))
        faster = f"{base / r['ms_per_step']:.2f}" if base else ""
        sent = plans.sent_bytes(r["model"], r["variant"], r["ranks"])
        tables.row(r["model"], r["ranks"], r["rate"], name_of(r["variant"]), f"{sent:,} B", f"{r['ms_per_step']:,.1f}",
                   faster)


def print_check(rows, plans, unshaped):
    """Measured over planned, from the step of as many ranks over links without a limit: compute shares the machine."""
    free = {(r["model"], r["ranks"], r["variant"]): r["ms_per_step"] for r in rows if r["rate"] == unshaped}
    print()
    tables.head("model", "ranks", "link", "exchange", "ms unshaped", "ms planned", "ms measured", "measured is off by")
    deviations = []
    for r in rows:
        base = free.get((r["model"], r["ranks"], r["variant"]))
        if r["rate"] == unshaped or base is None:
            continue
        planned = plans.step_ms(r, base)
        deviations.append(r["ms_per_step"] / planned - 1)
        tables.row(r["model"], r["ranks"], r["rate"], name_of(r["variant"]), f"{base:,.1f}", f"{planned:,.1f}",
                   f"{r['ms_per_step']:,.1f}", f"{100 * deviations[-1]:+.0f} %")
    if not deviations:
        print(f"slow_links: nothing to compare: it takes points with a rate, and the same with '{unshaped}'")
        return
    within = sum(abs(d) <= 0.2 for d in deviations)
    print(f"\n{within} of {len(deviations)} within 20 % of dgc plan; the worst is off by "
          f"{100 * max(deviations, key=abs):+.0f} %")


def plot(rows, unshaped, path):
    """A row per model, a picture per number of ranks; in it, for every link, a bar per exchange."""
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("agg")
    from matplotlib import pyplot, ticker  # pylint: disable=import-outside-toplevel
    pyplot.rcParams.update({"font.size": 9, "svg.fonttype": "none", "font.family": "sans-serif"})
    models, counts, rates, variants = (list(dict.fromkeys(r[key] for r in rows))
                                       for key in ("model", "ranks", "rate", "variant"))
    colors = _colors(variants)
    figure, axes = pyplot.subplots(len(models), len(counts), figsize=(1 + 4.6 * len(counts), 0.6 + 2.9 * len(models)),
                                   sharey="row", squeeze=False)
    width = 0.84 / len(variants)
    for model, line in zip(models, axes):
        for ranks, axis in zip(counts, line):
            found = {(r["rate"], r["variant"]): r["ms_per_step"] for r in rows
                     if (r["model"], r["ranks"]) == (model, ranks)}
            for i, variant in enumerate(variants):
                places = {rates.index(rate) + (i - (len(variants) - 1) / 2) * width: ms
                          for (rate, name), ms in found.items() if name == variant}
                bars = axis.bar(list(places), list(places.values()), 0.92 * width, color=colors[variant],
                                label=name_of(variant))
                axis.bar_label(bars, [_short(ms) for ms in places.values()], rotation=90, padding=2, fontsize=6.5)
            axis.set_title(f"{TITLES.get(model, model)}, {ranks} ranks", fontsize=10)
            axis.set_xticks(range(len(rates)), ["no limit" if rate == unshaped else rate for rate in rates])
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
            axis.yaxis.set_minor_formatter(ticker.NullFormatter())
            axis.margins(y=0.25)
            axis.grid(axis="y", which="major", linewidth=0.5, alpha=0.5)
            axis.set_axisbelow(True)
            axis.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel("ms per step")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.32 * -(-len(labels) // 4) / figure.get_figheight(), 1, 1), h_pad=1.5)
    figure.savefig(path, dpi=150)


def _short(ms):
    return f"{ms:.0f}" if ms < 10_000 else f"{ms / 1000:.1f} s"


def _colors(variants):
    """Greys for dense, and from light to dark for DGC."""
    from matplotlib import colormaps  # pylint: disable=import-outside-toplevel
    greys = {"dense+fp32": "#4d4d4d", "dense+fp16": "#a6a6a6"}
    dgc = [variant for variant in variants if variant not in greys]
    shades = {variant: colormaps["viridis"](0.15 + 0.75 * i / max(1, len(dgc) - 1)) for i, variant in enumerate(dgc)}
    return greys | shades
