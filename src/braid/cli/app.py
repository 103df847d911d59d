"""The `braid` command and how it reports errors: one message, exit code 1, no stack trace."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from braid.cli.demo import demo
from braid.cli.experiment import experiment
from braid.cli.explain import explain
from braid.cli.generate import generate
from braid.cli.optimize import optimize
from braid.cli.run import run
from braid.cli.stopping import Stopped, heed_signals, leave
from braid.model.errors import BraidError

app = typer.Typer(
    help="Continuous multi-way stream joins on Spark that adapt while they run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
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
