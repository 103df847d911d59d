"""Ratios, a table, a JSON file and a picture from a list of runs.

`python -m bench.report results.json` draws the table and the picture of an earlier run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from bench.measurement import Measurement

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

HEADINGS = ("system", "rows/s", "Braid is", "target", "rows seen", "results", "exact")
BRAID = "braid"
CEILING = "braid-pass-through"
SPARK = ("spark-default", "spark-rocksdb")
LABELS = {
    "braid": "Braid",
    "braid-pass-through": "Braid, pass-through (transport ceiling)",
    "spark-default": "Spark native, default store",
    "spark-rocksdb": "Spark native, RocksDB store",
    "flink": "Flink interval joins",
    "pathway": "Pathway interval joins",
    "duckdb": "DuckDB, one batch query (outer limit)",
}
COLOURS = {"braid": "#c2410c", "braid-pass-through": "#fdba74", "duckdb": "#a3a3a3"}
PEER_COLOUR = "#1d4ed8"
QUIET_PERCENT = 10.0
SPARK_TARGETS = {"150k": 6.0, "1500k": 20.0}
TARGETS = {"flink": 5.0, "pathway": 3.0, CEILING: 0.7}


@dataclass(frozen=True, slots=True)
class Run:
    """A measurement in its setting, with the truth beside it."""

    setting: str
    measurement: Measurement
    expected_rows: int | None  # None: this system does not produce the result
    busy_percent: float  # how much of the machine others used just before

    @property
    def exact(self) -> bool | None:
        """Whether the number of results is right."""
        if self.expected_rows is None:
            return None
        return self.measurement.output_rows == self.expected_rows

    @property
    def rate(self) -> float:
        """Steady input rows per second."""
        return self.measurement.steady_rows_per_second


@dataclass(frozen=True, slots=True)
class Ratio:
    """Braid's rate over another system's, against the target if there is one."""

    setting: str
    system: str
    ratio: float
    target: float | None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached."""
        return None if self.target is None else self.ratio >= self.target


def ratios(runs: list[Run]) -> list[Ratio]:
    """Braid against each system, setting by setting; none where either is wrong or absent."""
    found = []
    for setting, rates in rates_by_setting(runs).items():
        if BRAID not in rates:
            continue
        faster = max((name for name in SPARK if name in rates), key=rates.get, default=None)
        for system, rate in rates.items():
            if system == BRAID:
                continue
            target = SPARK_TARGETS.get(setting) if system == faster else TARGETS.get(system)
            found.append(Ratio(setting, system, rates[BRAID] / rate, target))
    return found


def rates_by_setting(runs: list[Run]) -> dict[str, dict[str, float]]:
    """Rates by setting and system, in the order of the runs; a wrong result has no rate."""
    rates: dict[str, dict[str, float]] = {}
    for run in (run for run in runs if run.exact is not False):
        rates.setdefault(run.setting, {})[run.measurement.system] = run.rate
    return rates


def print_tables(runs: list[Run], console: Console | None = None) -> None:
    """One table per setting."""
    console = console or Console(width=132)
    by_system = {(ratio.setting, ratio.system): ratio for ratio in ratios(runs)}
    for setting in dict.fromkeys(run.setting for run in runs):
        table = Table(title=f"{setting}-row batches", title_justify="left")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading == "system" else "right")
        for run in (run for run in runs if run.setting == setting):
            ratio = by_system.get((setting, run.measurement.system))
            table.add_row(*table_cells(run, ratio))
        console.print(table)
    for run in runs:
        if run.busy_percent > QUIET_PERCENT:
            console.print(
                f"{run.measurement.system} ({run.setting}): the machine was"
                f" {run.busy_percent:.0f} % busy before it began, so its rate may be too low"
            )
        if run.exact is False:
            wanted, got = run.expected_rows, run.measurement.output_rows
            console.print(
                f"{run.measurement.system} gave {got:,} results instead of {wanted:,}"
                f" ({run.setting}): its rate does not count"
            )


def table_cells(run: Run, ratio: Ratio | None) -> list[str]:
    """One row of the table as text."""
    measurement = run.measurement
    verdict = {True: "met", False: "missed", None: ""}[ratio.met if ratio else None]
    return [
        LABELS.get(measurement.system, measurement.system),
        f"{run.rate:,.0f}",
        f"{ratio.ratio:.2f}x" if ratio else "",
        f">= {ratio.target:g}x {verdict}" if ratio and ratio.target else "",
        f"{measurement.input_rows:,}",
        "" if run.expected_rows is None else f"{measurement.output_rows:,}",
        {True: "yes", False: "NO", None: "n/a"}[run.exact],
    ]


def draw(runs: list[Run], path: Path) -> None:
    """One panel of horizontal bars per setting, on a common logarithmic axis."""
    by_setting = rates_by_setting(runs)
    if not by_setting:
        return
    by_system = {(ratio.setting, ratio.system): ratio for ratio in ratios(runs)}
    height = 0.9 + sum(0.75 + 0.38 * len(rates) for rates in by_setting.values())
    figure, panels = plt.subplots(
        len(by_setting),
        1,
        figsize=(9.5, height),
        sharex=True,
        squeeze=False,
        height_ratios=[len(rates) + 1 for rates in by_setting.values()],
        layout="constrained",
    )
    for panel, (setting, rates) in zip(panels[:, 0], by_setting.items(), strict=True):
        systems = sorted(rates, key=rates.get)
        colours = [COLOURS.get(system, PEER_COLOUR) for system in systems]
        labels = [LABELS.get(system, system) for system in systems]
        bars = panel.barh(labels, [rates[system] for system in systems], color=colours)
        panel.bar_label(
            bars,
            [bar_text(rates[system], by_system.get((setting, system))) for system in systems],
            padding=4,
            fontsize=9,
        )
        panel.set_title(f"{setting}-row batches", loc="left", fontsize=11, fontweight="bold")
        panel.set_xscale("log")
        panel.spines[["top", "right"]].set_visible(False)
        panel.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: short(rate)))
    every = [rate for rates in by_setting.values() for rate in rates.values()]
    panels[-1, 0].set_xlim(min(every) / 2, max(every) * 8)  # room for the labels
    panels[-1, 0].set_xlabel("input rows per second, steady state (log scale)")
    figure.suptitle("a ⋈ b ⋈ c on k within 10 s: one input, one machine", fontsize=12)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def bar_text(rate: float, ratio: Ratio | None) -> str:
    """What stands beside a bar."""
    return f"{short(rate)}/s" + (f"   Braid is {ratio.ratio:.2g}x" if ratio else "")


def short(number: float) -> str:
    """A number in three digits.

    >>> short(43_210), short(1_250_000), short(900)
    ('43.2 k', '1.25 M', '900')
    """
    for limit, unit in ((1e6, " M"), (1e3, " k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


def write_json(runs: list[Run], path: Path, **context: object) -> None:
    """Everything that was measured, and the ratios."""
    document = {
        **context,
        "runs": [asdict(run) | {"exact": run.exact} for run in runs],
        "ratios": [asdict(ratio) | {"met": ratio.met} for ratio in ratios(runs)],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def read_json(path: Path) -> list[Run]:
    """The runs of an earlier report."""
    return [
        Run(
            run["setting"],
            Measurement(**run["measurement"]),
            run["expected_rows"],
            run["busy_percent"],
        )
        for run in json.loads(path.read_text())["runs"]
    ]


def main() -> None:
    """Report again on saved results."""
    source = Path(sys.argv[1])
    runs = read_json(source)
    print_tables(runs)
    draw(runs, source.with_suffix(".png"))


if __name__ == "__main__":
    main()
