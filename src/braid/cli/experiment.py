"""`braid experiment`: a figure of a paper, made again on the real engine or from models."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from braid.cli.spark_start import start_spark
from braid.experiment import EXPERIMENTS, STUDIES, Experiment, Study, perform
from braid.experiment.picture import draw_outcomes
from braid.experiment.setup import Rows
from braid.model.checks import require_known
from braid.model.paths import local_path


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="Which one; all of them, if left out.", show_default=False),
    ] = None,
    *,
    out: Annotated[
        Path,
        typer.Option(
            parser=local_path, metavar="DIR", help="Folder for the picture and the table."
        ),
    ] = Path("experiments"),
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    names: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
) -> None:
    """Run a paper's experiment, scaled down: a picture, and a table of ours beside theirs."""
    known: dict[str, Experiment | Study[Any]] = {**EXPERIMENTS, **STUDIES}
    if names:
        for each in known.values():
            typer.echo(f"{each.name:22} {each.title} ({each.source.rpartition(', ')[2]})")
        return
    if name is not None:
        require_known("experiment", name, known)
    chosen = list(known.values()) if name is None else [known[name]]
    out.mkdir(parents=True, exist_ok=True)
    if any(isinstance(each, Experiment) for each in chosen):
        start_spark(master)
    console = Console()
    for each in chosen:
        with console.status(each.title) as status:
            rows = _perform(each, out / f"{each.name}.png", status.update)
        (out / f"{each.name}.md").write_text(_as_markdown(each, rows))
        console.print(_as_table(each, rows))
        made = f"{out / each.name}.png, {out / each.name}.md\n"
        console.print(made, highlight=False, markup=False, soft_wrap=True)


def _perform(
    which: Experiment | Study[Any], picture: Path, on_step: Callable[[str], None]
) -> Rows:
    """Draw the picture of what comes of it, and give the rows of its table."""
    if isinstance(which, Study):
        found = which.compute(on_step)
        which.draw(found, picture)
        return which.compare(found)
    outcomes = perform(which, lambda trial: on_step(trial.name))
    draw_outcomes(which, outcomes, picture)
    return which.compare(outcomes)


def _as_table(which: Experiment | Study[Any], rows: Rows) -> Table:
    table = Table("", "ours", "the paper's", title=which.title, caption=which.source)
    for row in rows:
        table.add_row(*row)
    return table


def _as_markdown(which: Experiment | Study[Any], rows: Rows) -> str:
    lines = [f"# {which.title}", "", f"After {which.source}.", "", "| | ours | the paper's |"]
    lines += ["|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return "\n".join([*lines, f"![{which.title}]({which.name}.png)", ""])
