"""The `braid` command and how it reports errors: one message, exit code 1, no stack trace."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from braid import __version__
from braid.cli.demo import demo
from braid.cli.experiment import experiment
from braid.cli.explain import explain
from braid.cli.generate import generate
from braid.cli.optimize import optimize
from braid.cli.run import run
from braid.cli.stopping import Stopped, heed_signals, leave
from braid.model.errors import BraidError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"braid {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Say which Braid this is."
        ),
    ] = False,
) -> None:
    """Continuous multi-way stream joins on Spark that adapt while they run."""


app.command()(run)
app.command()(explain)
app.command()(optimize)
app.add_typer(generate, name="generate")
app.command()(demo)
app.command()(experiment)


def main() -> None:
    """Run the command that the arguments name."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    heed_signals()
    try:
        app()
    except BraidError as error:
        errors.print("[red]error:[/red]", end=" ")
        errors.print(str(error), markup=False, emoji=False)
        sys.exit(1)
    except OSError as error:
        errors.print("[red]error:[/red]", end=" ")
        errors.print(f"{error.strerror or error}: {error.filename or ''}", markup=False)
        sys.exit(1)
    except Stopped as stopped:
        leave(stopped)
