"""Collectives of simulated ranks whose clocks, delays and stragglers are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warplens.recipes import ranks
from warplens.recipes.collectives import answering, matching, waits
from warplens.recipes.collectives.matching import BY_ORDER, BY_SEQUENCE

STEP_NS, TRANSFER_NS = 10_000_000, 500_000


@dataclass
class Cluster:
    """Ranks that meet in an all-reduce in each step. Times are ns.

    `late`: rank to the work that it does beyond the others; `offset`, `drift`: host to its clock's error.
    """

    ranks: int = 4
    steps: int = 60
    late: dict[int, int] = field(default_factory=dict)
    offset: dict[str, int] = field(default_factory=dict)
    drift: dict[str, float] = field(default_factory=dict)
    ranks_per_host: int = 1
    jitter: int = 2_000
    sequence: bool = True
    name: str = "all_reduce"

    def rows(self) -> pa.Table:
        random = np.random.default_rng(1)
        rows: list[dict[str, Any]] = []
        free = np.zeros(self.ranks)
        for step in range(self.steps):
            work = STEP_NS + random.integers(0, 50_000, self.ranks).astype(float)
            for rank, more in self.late.items():
                work[rank] += more
            start = free + work
            end = start.max() + TRANSFER_NS + random.integers(-self.jitter, self.jitter + 1, self.ranks)
            for rank in range(self.ranks):
                host = f"host{rank // self.ranks_per_host}"
                rows.append(
                    {
                        "report": rank,
                        "rank": rank,
                        "host": host,
                        "process": 0,
                        "device": 0,
                        "name": self.name,
                        "group": "world",
                        "sequence": step if self.sequence else None,
                        "start": self.clock(host, start[rank]),
                        "end": self.clock(host, end[rank]),
                        "before: GPU work": int(work[rank]),
                        "before: host-bound": 0,
                    }
                )
            free = np.full(self.ranks, start.max() + TRANSFER_NS)
        schema = pa.Table.from_pylist([rows[0] | {"sequence": 0}]).schema
        return pa.Table.from_pylist(rows, schema=schema)

    def clock(self, host: str, time: float) -> int:
        return round(10**12 + time + self.offset.get(host, 0) + time * self.drift.get(host, 0.0))


def test_the_rank_that_the_others_wait_for_is_named_with_its_reason() -> None:
    answer = answering.answer(Cluster(late={2: 3_000_000}).rows())
    assert answer.facts["straggler"] == "rank 2"
    assert answer.facts["reason"] == "its kernels worked longer"
    row = answer.tables["by_rank"].to_pylist()[0]
    assert (row["Rank"], row["Last"]) == ("rank 2", 60)
    assert row["Others waited (ns)"] == pytest.approx(3 * 60 * 3_000_000, rel=0.05)
    assert "Rank 2 came last to 60 of them" in answer.lines[1]


def test_even_ranks_have_no_straggler() -> None:
    answer = answering.answer(Cluster().rows())
    assert answer.facts["straggler"] is None
    assert any("No single rank delays" in line for line in answer.lines)


@pytest.mark.parametrize("drift", [0.0, 20e-6], ids=["offset", "offset and drift"])
def test_clocks_of_hosts_are_put_beside_each_other(drift: float) -> None:
    """Without this, the host whose clock is 5 ms ahead would be the straggler."""
    offset = {"host0": 0, "host1": 5_000_000, "host2": -1_500_000, "host3": 400_000}
    cluster = Cluster(late={2: 800_000}, offset=offset, drift={"host1": drift})
    result = waits.waits(cluster.rows())
    assert result.clocks.before.max() > 100_000
    assert result.clocks.uncertainty is not None
    assert result.clocks.uncertainty < 2 * cluster.jitter
    assert int(np.argmax(result.cost)) == 2
    assert answering.answer(cluster.rows()).facts["straggler"] == "rank 2"


def test_ranks_of_one_host_are_corrected_alike() -> None:
    cluster = Cluster(ranks=8, ranks_per_host=4, offset={"host1": 2_000_000}, late={6: 900_000})
    result = waits.waits(cluster.rows())
    assert len({tuple(column) for column in result.clocks.shift[:, 4:].T.tolist()}) == 1
    assert int(np.argmax(result.cost)) == 6


def test_clocks_that_agree_are_left_alone() -> None:
    result = waits.waits(Cluster(late={1: 700_000}).rows())
    assert not result.clocks.shift.any()
    assert (result.clocks.residual <= result.clocks.before).all()


def test_sends_decide_nothing_about_clocks() -> None:
    result = waits.waits(Cluster(name="send", late={1: 700_000}, offset={"host3": 3_000_000}).rows())
    assert not result.clocks.shift.any()
    assert result.clocks.uncertainty is None


def test_a_skew_below_the_clocks_names_nobody() -> None:
    cluster = Cluster(jitter=400_000, late={1: 60_000})
    result = waits.waits(cluster.rows())
    assert result.inconclusive > result.collectives / 2
    assert "too close together" in " ".join(answering.answer(cluster.rows()).lines)


def matched(rows: pa.Table) -> matching.MatchedCollectives:
    rank, _, _ = ranks.names_of(rows)
    return matching.matched(rows, rank)


def test_sequence_numbers_match_ranks_that_began_at_different_steps() -> None:
    rows = Cluster(steps=20).rows()
    own = np.asarray(rows.column("rank").to_pylist()) == 3
    early = np.asarray(rows.column("sequence").to_pylist()) < 5
    result = matched(rows.filter(pa.array(~(own & early))))
    assert result.how == {BY_SEQUENCE: 20}
    assert (result.row[:5, 3] == -1).all()
    assert result.unmatched == 0


def test_without_numbers_the_order_matches() -> None:
    result = matched(Cluster(steps=20, sequence=False).rows())
    assert result.how == {BY_ORDER: 20}
    assert result.row.shape == (20, 4)


def test_without_numbers_different_counts_match_nothing() -> None:
    """A dropped call would shift all later ones."""
    rows = Cluster(steps=20, sequence=False).rows()
    result = matched(rows.slice(1))
    assert result.how == {}
    assert result.unmatched == rows.num_rows - 1
    answer = answering.answer(rows.slice(1))
    assert answer.facts["straggler"] is None
    assert "Matched by nothing" in " ".join(answer.lines)


def test_gpus_of_one_process_are_ranks() -> None:
    rows = Cluster(ranks=2, late={1: 2_000_000}).rows()
    rows = rows.set_column(rows.column_names.index("device"), "device", rows.column("rank"))
    for name in ("report", "process"):
        rows = rows.set_column(rows.column_names.index(name), name, pa.array([0] * rows.num_rows))
    rows = rows.set_column(rows.column_names.index("rank"), "rank", pa.nulls(rows.num_rows, pa.int64()))
    assert answering.answer(rows).facts["straggler"] == "GPU 1"
