"""Settings of Spark's that users give, and those that they should have given."""

import subprocess
import sys

import pytest

import braid
from braid.model.errors import BraidError
from braid.spark.session import SETTINGS, unpinned

BRAID = [sys.executable, "-c", "from braid.cli import main; main()"]


@pytest.mark.spark
def test_a_setting_may_have_underscores_in_its_name(spark):
    given = braid.session(config={"spark.braid.two_words": "kept"}, spark_braid_dots="dots")
    assert given.conf.get("spark.braid.two_words") == "kept"
    assert given.conf.get("spark.braid.dots") == "dots"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--conf=spark.serializer=no.such.Serializer", "no.such.Serializer"),
        ("--conf=spark.serializer=no.such.Serializer", "check --master and --conf; what"),
        ("--conf=spark.serializer", "write --conf KEY=VALUE"),
        ("--packages=nothing", "check --master and --packages; what"),
    ],
)
@pytest.mark.spark
def test_settings_of_the_command_reach_spark(tmp_path, option, said):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.csv").write_text("ts,k\n2024-01-01T00:00:00Z,1\n")
    text = "SELECT x.k FROM a [RANGE 1 SECOND] AS x, a [RANGE 1 SECOND] AS y WHERE x.k = y.k"
    places = [f"--stream=a={tmp_path / 'a'}", f"--out={tmp_path / 'o'}"]
    command = [*BRAID, "run", "-q", text, *places, f"--checkpoint={tmp_path / 'c'}"]
    done = subprocess.run([*command, option], capture_output=True, text=True)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_session_without_the_settings_for_pinning_is_told_which_it_lacks():
    assert unpinned(SETTINGS) == []
    assert unpinned({}) == [
        "spark.shuffle.reduceLocality.enabled=false",
        "spark.locality.wait.process=30s",
    ]


@pytest.mark.parametrize(
    ("wait", "suffices"), [("30s", True), ("1min", True), ("30000", True), ("0", False)]
)
def test_a_long_wait_for_any_place_is_one_for_a_process_too(wait, suffices):
    given = {"spark.shuffle.reduceLocality.enabled": "false", "spark.locality.wait": wait}
    assert (unpinned(given) == []) is suffices


def test_an_environment_that_asks_for_spark_connect_is_refused(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:15002")
    with pytest.raises(BraidError, match="the environment asks for Spark Connect") as refused:
        braid.session()
    assert refused.value.hint == "unset SPARK_REMOTE"


def test_a_setting_that_asks_for_spark_connect_is_refused():
    with pytest.raises(BraidError, match=r"the setting spark\.remote asks") as refused:
        braid.session(spark_remote="sc://localhost:15002")
    assert refused.value.hint == "leave it out"
