"""What PyPI nvtx's test files import as `conftest`: their fixtures, the checks, and the list of what differs.

UPSTREAM_SUBJECT is `nvtx` (the package itself) or `warplens` (ours, under its names); UPSTREAM_RESULT is where the counts go.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.upstream.deviations import DEVIATIONS
from tests.upstream.events import Events, listen

MODE = os.environ["UPSTREAM_MODE"]
if os.environ["UPSTREAM_SUBJECT"] == "warplens":
    from tests.upstream import shim

    shim.install()

_events = listen()
_outcomes: Counter[str] = Counter()


_passed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Remember whether the body of the test passed."""
    if call.when == "call":
        item.stash[_passed] = call.excinfo is None
    return (yield)


@pytest.fixture
def nvtx_events(request: pytest.FixtureRequest) -> Any:
    """What the tool hears, None without a tool; nothing may be left that the test did not ask for."""
    if _events is not None:
        _events.start()
    yield _events
    sys.setprofile(None)  # a test that fails leaves its profiler on
    if _events is not None and request.node.stash.get(_passed, False):
        assert _events.left() == []


@pytest.fixture(params=[None, "", "message"])
def message(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[None, "rapids", "red", 0x123456, 0xFF00FF])
def color(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[None, "", "domain"], scope="session")
def domain(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[None, 1, 1.5])
def payload(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[None, "", "category"])
def category(request: pytest.FixtureRequest) -> Any:
    return request.param


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect to fail what deviates; one that passes after all fails the run."""
    if os.environ["UPSTREAM_SUBJECT"] != "warplens":
        return
    used = set()
    for item in items:
        name = item.nodeid.rpartition("/")[2]
        for number, deviation in enumerate(DEVIATIONS):
            if MODE in deviation.modes and fnmatchcase(name, deviation.cases):
                used.add(number)
                item.add_marker(pytest.mark.xfail(reason=deviation.reason, strict=True))
    stale = [d.cases for number, d in enumerate(DEVIATIONS) if MODE in d.modes and number not in used]
    if stale and "UPSTREAM_PART" not in os.environ:
        raise pytest.UsageError(f"deviations that name no case: {', '.join(stale)}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count each case once."""
    if report.when == "call" or report.outcome != "passed":
        _outcomes["deviates" if report.skipped and hasattr(report, "wasxfail") else report.outcome] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave the counts for the job."""
    heard = _events.totals() if isinstance(_events, Events) else {}
    result = {"collected": session.testscollected, "outcomes": dict(_outcomes), "heard": heard}
    Path(os.environ["UPSTREAM_RESULT"]).write_text(json.dumps(result), encoding="utf-8")
