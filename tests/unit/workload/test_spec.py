import pytest

from braid.model.errors import BraidError
from braid.workload import PartitionSpec, Phase, StreamSpec, WorkloadSpec

A = StreamSpec("a")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: StreamSpec("a", rate=-1), "rate must be from 0"),
        (lambda: StreamSpec("a", rate=float("nan")), "rate must be from 0"),
        (lambda: StreamSpec("a", rate=True), "rate must be a number, not True"),
        (lambda: StreamSpec("../a"), "name must be a name, not '../a'"),
        (lambda: StreamSpec("a", phases=[Phase(1)]), "phases must be a list"),
        (lambda: StreamSpec("a", phases=(1,)), "phases must hold nothing but Phase"),
        (lambda: Phase(seconds=0), "seconds must be from 0.001"),
        (lambda: Phase(1, rate=-5), "rate must be from 0"),
        (lambda: Phase(1, weights=(1, -1)), "weights must be from 0"),
        (lambda: Phase(1, weights=(0, 0)), "weights must not all be zero"),
        (lambda: PartitionSpec(count=0), "count must be from 1"),
        (lambda: PartitionSpec(count=1.5), "count must be a whole number"),
        (lambda: PartitionSpec(join_rate=0), "join_rate must be from 1e-06"),
        (lambda: PartitionSpec(tuple_range=-3), "tuple_range must be from 1"),
        (lambda: PartitionSpec(join_rate=1e-6, tuple_range=10**12), "tuple_range 1,000,000"),
        (lambda: PartitionSpec(weight=-1), "weight must be from 0"),
        (lambda: WorkloadSpec(()), "streams must not be empty"),
        (lambda: WorkloadSpec((A, A)), "streams must have different names: 'a'"),
        (lambda: WorkloadSpec((A,), ()), "partitions must be from 1"),
        (lambda: WorkloadSpec((A,), (PartitionSpec(weight=0),)), "weight must not be zero"),
        (lambda: WorkloadSpec((A,), zipf=-1), "zipf must be from 0"),
        (lambda: WorkloadSpec((A,), disorder_seconds=-1), "disorder_seconds must be from 0"),
        (lambda: WorkloadSpec((A,), pad_bytes=10**9), "pad_bytes must be from 0"),
        (lambda: WorkloadSpec((A,), seed=-1), "seed must be from 0"),
        (lambda: WorkloadSpec((A,), start_us="now"), "start_us must be a whole number"),
    ],
)
def test_a_bad_field_is_named(make, said):
    with pytest.raises(BraidError) as caught:
        make()
    assert caught.value.message.startswith(said)


def test_weights_must_fit_the_partitions():
    stream = StreamSpec("a", phases=(Phase(1), Phase(1, weights=(1, 2))))
    with pytest.raises(BraidError, match="weights of phase 1 of stream 'a' must be as many"):
        WorkloadSpec((stream,))


def test_each_partition_must_own_a_value():
    with pytest.raises(BraidError, match="tuple_range 899 at join_rate 3") as caught:
        WorkloadSpec((A,), (PartitionSpec(300, join_rate=3, tuple_range=899),))
    assert caught.value.hint == "take a tuple_range of at least 900"


def test_an_unknown_stream_is_named_beside_the_known():
    with pytest.raises(BraidError, match="unknown stream 'c'") as caught:
        WorkloadSpec((A, StreamSpec("b"))).stream("c")
    assert caught.value.hint == "the workload has a, b"
