import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from braid.cli.generate import generate
from braid.model.errors import BraidError
from braid.workload import PartitionSpec, StreamSpec, WorkloadSpec, dump_spec, nexmark, rows


def run(*arguments):
    return CliRunner().invoke(generate, [str(argument) for argument in arguments])


def read(folder):
    return pyarrow.parquet.read_table(sorted(folder.glob("part-*.parquet")))


def test_each_stream_gets_a_folder_and_a_line(tmp_path):
    result = run("--out", tmp_path, "--streams", "a,b", "--rate", 100, "--seconds", 12)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert [line.split(":")[0] for line in lines] == ["a", "b"]
    assert "rows in 3 files" in lines[0]
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_options_describe_the_workload(tmp_path):
    options = "--rate 500 --seconds 3 --join-rate 2 --tuple-range 1000 --partitions 10"
    more = "--zipf 1 --pad 3 --seed 9"
    result = run("--out", tmp_path, *options.split(), *more.split(), "--disorder", "1 second")
    assert result.exit_code == 0, result.output
    spec = WorkloadSpec(
        tuple(StreamSpec(name, 500) for name in "abc"),
        (PartitionSpec(10, 2, 1000),),
        zipf=1,
        disorder_seconds=1,
        pad_bytes=3,
        seed=9,
    )
    assert read(tmp_path / "c").equals(rows(spec, "c", 0, 3_000_000))


def test_a_file_describes_the_workload_and_the_seed_may_differ(tmp_path):
    spec = WorkloadSpec((StreamSpec("x", 100),), seed=5)
    (tmp_path / "spec.json").write_text(dump_spec(spec))
    for seed, options in ((5, ()), (6, ("--seed", 6))):
        out = tmp_path / str(seed)
        result = run("--out", out, "--spec", tmp_path / "spec.json", "--seconds", 5, *options)
        assert result.exit_code == 0, result.output
    assert read(tmp_path / "5" / "x").equals(rows(spec, "x", 0, 5_000_000))
    assert not read(tmp_path / "6" / "x").equals(read(tmp_path / "5" / "x"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rate", "-1"], "rate must be from 0"),
        (["--join-rate", "0"], "join_rate must be from"),
        (["--streams", "a,a"], "streams must have different names"),
        (["--streams", ""], "name must be a name"),
        (["--disorder", "soon"], "cannot read the duration 'soon'"),
        (["--format", "orc"], "unknown format 'orc'"),
        (["--spec", "none.json"], "cannot read the workload spec none.json"),
        (["--spec", "none.json", "--rate", "3"], "cannot combine --spec with --rate"),
        (["--seconds", "nan"], "seconds must be from"),
    ],
)
def test_what_is_wrong_is_said_in_words(tmp_path, options, said):
    result = run("--out", tmp_path / "out", *options)
    assert isinstance(result.exception, BraidError)
    assert result.exception.message.startswith(said)


def test_out_is_demanded():
    result = run("--rate", 5)
    assert isinstance(result.exception, BraidError)
    assert result.exception.message == "option --out is missing"


def test_nexmark_is_three_folders(tmp_path):
    result = run("nexmark", "--out", tmp_path, "--rate", 500, "--seconds", 12, "--seed", 7)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert [line.split(":")[0] for line in lines] == ["person", "auction", "bid"]
    assert lines[2].startswith("bid: 5,520 rows in 3 files")
    spec = nexmark.NexmarkSpec(rate=500, seed=7)
    for stream in nexmark.STREAMS:
        assert read(tmp_path / stream).equals(nexmark.rows(spec, stream, 0, 12_000_000))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nexmark", "--rate", "0"], "rate must be from 1"),
        (["nexmark", "--format", "orc"], "unknown format 'orc'"),
        (["--rate", "5", "nexmark"], "cannot use --rate before nexmark"),
        (["--file-seconds", "5", "nexmark"], "cannot use --file-seconds before nexmark"),
    ],
)
def test_what_is_wrong_with_nexmark_is_said_in_words(tmp_path, arguments, said):
    result = run(*arguments, "--out", tmp_path / "out")
    assert isinstance(result.exception, BraidError)
    assert result.exception.message.startswith(said)
    assert not (tmp_path / "out").exists()
