"""The data of the terminal timeline: tracks with lanes, lanes with bars, in columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from warplens.timeline.kinds import label_of

SAMPLES = label_of("samples")


@dataclass(frozen=True)
class Bar:
    """Columns `first` to `last` of a lane: one range, or `number` small ones.

    `many` false: one range; else `name` took the most time.

    `busy` holds the share of each column's time, 0 to 1.
    """

    first: int
    last: int
    name: str
    domain: str | None
    color: int | None
    many: bool
    number: int
    busy: tuple[float, ...]
    unfinished: bool = False

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class Mark:
    """Marks of one column; `name` is that of the first."""

    column: int
    name: str
    number: int


@dataclass
class Track:
    """A thread, a task or other row of one (`task` true), a stream, or start/end ranges of a process. `deeper` lanes were cut."""

    label: str
    id: str = ""
    lanes: list[list[Bar]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    deeper: int = 0
    task: bool = False


@dataclass(frozen=True)
class Crowd:
    """Tasks that are not shown one by one: per column, how many had a range open, 0 to `peak`."""

    tasks: int
    open: tuple[float, ...]

    @property
    def peak(self) -> float:
        """The most that had a range open in a column."""
        return max(self.open, default=0.0)


@dataclass(frozen=True)
class Level:
    """Busy share of each column, 0 to 1."""

    label: str
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Band:
    """States of a thread, one character per column.

    `columns`: the shares (0 to 1) of three states, whose names `kind` stands for.

    `states`: running, runnable, blocked. `gil`: holds it, waits for it, and nothing.
    """

    label: str
    kind: str
    columns: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Gauge:
    """A counter: per column its height between `low` and `high`, 0 to 1.

    None: nothing is known there.
    """

    label: str
    domain: str | None
    heights: tuple[float | None, ...]
    low: float
    high: float
    unit: str | None
    summed: bool


@dataclass
class Group:
    """A process, or a GPU of it."""

    label: str
    rows: list[Track | Crowd | Level | Band] = field(default_factory=list)
    gauges: list[Gauge] = field(default_factory=list)

    @property
    def tracks(self) -> list[Track]:
        """The rows that hold ranges and marks."""
        return [row for row in self.rows if isinstance(row, Track)]


@dataclass
class Picture:
    """All that is drawn.

    `begin` and `end` are ns from the report's begin; `hidden` counts the tracks that were left out.

    `alike`: what most of those are. `folded`: threads of which only the state is shown. `launches`: those at other times, where the
    longest is shown unasked.
    """

    title: str
    begin: int
    end: int
    columns: int
    groups: list[Group]
    hidden: int = 0
    alike: str = ""
    hidden_gauges: int = 0
    folded: int = 0
    launches: int = 0
    unfinished: bool = False
