"""`braid experiment`: a figure of a paper, made again on the real engine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from braid.adapt.checks import require_known
from braid.cli.spark_start import start_spark
from braid.experiment import EXPERIMENTS, Experiment, perform
from braid.experiment.picture import draw_outcomes
from braid.experiment.setup import Rows


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="Which one; all of them, if left out.", show_default=False),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the table.")] = Path(
        "experiments"
    ),
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    names: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
) -> None:
    """Run a paper's experiment, scaled down: a picture, and a table of ours beside theirs."""
    if names:
        for each in EXPERIMENTS.values():
            typer.echo(f"{each.name:22} {each.title} ({each.source.rpartition(', ')[2]})")
        return
    if name is not None:
        require_known("experiment", name, EXPERIMENTS)
    chosen = list(EXPERIMENTS.values()) if name is None else [EXPERIMENTS[name]]
    out.mkdir(parents=True, exist_ok=True)
    start_spark(master)
    console = Console()
    for each in chosen:
        with console.status(each.title) as status:
            outcomes = perform(each, lambda trial: status.update(trial.name))
        draw_outcomes(each, outcomes, out / f"{each.name}.png")
        rows = each.compare(outcomes)
        (out / f"{each.name}.md").write_text(_as_markdown(each, rows))
        console.print(_as_table(each, rows))
        console.print(f"{out / each.name}.png, {out / each.name}.md\n", highlight=False)


def _as_table(which: Experiment, rows: Rows) -> Table:
    table = Table("", "ours", "the paper's", title=which.title, caption=which.source)
    for row in rows:
        table.add_row(*row)
    return table


def _as_markdown(which: Experiment, rows: Rows) -> str:
    lines = [f"# {which.title}", "", f"After {which.source}.", "", "| | ours | the paper's |"]
    lines += ["|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return "\n".join([*lines, f"![{which.title}]({which.name}.png)", ""])
