"""The server's addresses: the page, and `/api/1/` with one for each request of the page.

See docs/dev/formats/viewer.md.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute

from warplens.errors import MissingData, QueryError, ReportError, UsageError, WarplensError
from warplens.viewer import limits
from warplens.viewer.answers.answers import Answers, Outdated
from warplens.viewer.answers.plain import encoded
from warplens.viewer.server.channel import Channel
from warplens.viewer.server.guard import TooLong
from warplens.viewer.server.parameters import Parameters
from warplens.viewer.server.preload_page import preloaded
from warplens.viewer.server.subprocess_worker import SubprocessWorker
from warplens.viewer.server.workers import Busy, Workers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from warplens.viewer.bundle import File

API = "/api/1"
_log = logging.getLogger(__name__)
_BINARY = "application/octet-stream"
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (MissingData, 404),
    (Outdated, 409),
    (TooLong, 413),
    (UsageError, 400),
    (QueryError, 400),
    (Busy, 503),
    (WarplensError, 500),
)
_GONE = "\nIf the report was moved or removed, open it again."
_NO_FILE = ("No such file", "No files found")  # as Arrow and DuckDB say it
_Endpoint = Callable[["Request"], Awaitable[Response]]
_Ask = Callable[[Parameters], Callable[[], Any]]


class Site:
    """Answers requests: quick ones, heavy ones and SQL each in separate threads."""

    def __init__(
        self, answers: Answers, workers: Workers, pages: Mapping[str, File | Path], news: News
    ) -> None:
        """`pages`: by path, in memory or (what is large) on disk."""
        self._answers, self._workers, self._pages, self._news = answers, workers, pages, news
        self.subprocess = SubprocessWorker()

    def app(self) -> Starlette:
        """Return the ASGI application, which is to be guarded."""
        quick, heavy = self._quick_questions(), self._heavy_questions()
        routes: list[BaseRoute] = [Route(f"{API}/{name}", self._quick(ask)) for name, ask in quick.items()]
        routes += [Route(f"{API}/{name}", self._heavy(ask)) for name, ask in heavy.items()]
        routes.append(Route(f"{API}/stat/{{name}}", self._stat))
        routes.append(Route(f"{API}/sql", self._sql, methods=["POST"]))
        routes.append(Route(f"{API}/changed", _told(self._changed)))
        routes.append(WebSocketRoute(f"{API}/channel", Channel(partial(self._over_channel, quick)).serve))
        routes += [
            Route(path, self._start(file) if path == "/" and not isinstance(file, Path) else _page(file))
            for path, file in self._pages.items()
        ]
        return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})

    def _quick_questions(self) -> dict[str, _Ask]:
        answers = self._answers
        return {
            "meta": lambda p: answers.meta,
            "tracks": lambda p: _call(answers.tracks, p.whole("report")),
            "viewport": lambda p: _call(answers.viewport, *_query(p)),
            "plots": lambda p: _call(answers.plots, *_query(p)),
            "event": lambda p: _call(answers.event, *_event(p)),
            "search": lambda p: _call(
                answers.search,
                p.whole("report"),
                p.text("text"),
                p.flag("regex"),
                p.time("from"),
                p.whole("limit", 100, most=limits.EVENTS),
            ),
            "stat-list": lambda p: _call(answers.stat_list, p.whole("report")),
            "diagnostics": lambda p: _call(answers.diagnostics, p.whole("report")),
            "at": lambda p: _call(answers.at, p.whole("report"), p.text("table"), p.time("time")),
        }

    def _heavy_questions(self) -> dict[str, _Ask]:
        answers = self._answers
        return {
            "alike": lambda p: self._computed("alike", *_event(p)),
            "findings": lambda p: self._computed("findings", p.whole("report")),
            "selected": lambda p: _call(answers.selected, p.whole("report"), *_span(p), p.numbers("tracks")),
            "flame": lambda p: self._computed("flame", p.whole("report"), p.text("kind"), *p.span()),
            "source": lambda p: self._computed("source", p.whole("report"), p.text("file", ""), *p.span()),
            "steps": lambda p: self._computed("steps", p.whole("report"), p.text("name", "")),
            "difference": lambda p: _call(self.subprocess.difference, answers.view),
        }

    def _start(self, file: File) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            page = await self._workers.quick(lambda: preloaded(file.content, self._answers))
            return Response(page, headers={"content-type": file.kind})

        return _told(endpoint)

    def _quick(self, ask: _Ask) -> _Endpoint:
        return _told(lambda request: self._quickly(ask, request.query_params))

    async def _quickly(self, ask: _Ask, given: Mapping[str, str]) -> Response:
        work = ask(Parameters(given))
        return cast("Response", await self._workers.quick(lambda: _response(work())))

    async def _over_channel(
        self, questions: Mapping[str, _Ask], name: str, given: Mapping[str, str]
    ) -> Response:
        ask = questions.get(name)
        path = f"{API}/{name}"
        return _missing(path) if ask is None else await _safely(path, self._quickly(ask, given))

    def _heavy(self, ask: _Ask) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            work = ask(Parameters(request.query_params))
            return cast("Response", await self._workers.heavy(self._key(request), lambda: _response(work())))

        return _told(endpoint)

    async def _stat(self, request: Request) -> Response:
        async def endpoint(request: Request) -> Response:
            asked = Parameters(request.query_params)
            work = self._computed(
                "stat", asked.whole("report"), str(request.path_params["name"]), *asked.span()
            )
            return cast("Response", await self._workers.heavy(self._key(request), lambda: _response(work())))

        return await _told(endpoint)(request)

    async def _sql(self, request: Request) -> Response:
        async def endpoint(request: Request) -> Response:
            if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                raise UsageError("SQL must be sent as application/json")
            try:
                body = json.loads(await request.body())
                report, text = body["report"], body["text"]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise UsageError('SQL must be sent as {"report": 0, "text": "SELECT …"}') from None
            if not isinstance(report, int) or not isinstance(text, str):
                raise UsageError('SQL must be sent as {"report": 0, "text": "SELECT …"}')
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise UsageError("the SQL contains half a character (a lone surrogate)")
            return cast(
                "Response", await self._workers.sql(lambda: _response(self._answers.sql(report, text)))
            )

        return await _told(endpoint)(request)

    async def _changed(self, request: Request) -> Response:
        known = Parameters(request.query_params).numbers("known")
        return _response(await self._news.newer(known))

    def _computed(self, method: str, report: int, *arguments: Any) -> Callable[[], Any]:
        """Return what computes an answer: here, or of a large report in a separate process."""

        def work() -> Any:
            opened = self._answers.view.report(report)
            if self.subprocess.wanted(opened, method, *arguments):
                return self.subprocess.ask(opened, method, *arguments)
            return getattr(self._answers, method)(report, *arguments)

        return work

    def _key(self, request: Request) -> tuple[Any, ...]:
        """Name a heavy question: the same one of the same reports is computed once."""
        generations = tuple(opened.generation for opened in self._answers.view.reports)
        return (request.url.path, tuple(sorted(request.query_params.items())), generations)


class News:
    """Tells those who wait that a report was opened anew."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: asyncio.Event | None = None

    def tell(self) -> None:
        """Wake those who wait; from any thread."""
        loop, changed = self._loop, self._changed
        if loop is not None and changed is not None and not loop.is_closed():
            loop.call_soon_threadsafe(changed.set)

    def generations(self) -> list[int]:
        """Return the generation of each report."""
        return [opened.generation for opened in self._answers.view.reports]

    async def newer(self, known: list[int], seconds: float = limits.POLL_S) -> list[int]:
        """Return the generations when they are others than `known`, at the latest after a while."""
        self._loop = asyncio.get_running_loop()
        end = self._loop.time() + seconds
        while self.generations() == known and self._loop.time() < end:
            if self._changed is None or self._changed.is_set():
                self._changed = asyncio.Event()
            try:
                await asyncio.wait_for(self._changed.wait(), min(end - self._loop.time(), 1.0))
            except (asyncio.TimeoutError, TimeoutError):
                continue
        return self.generations()


def _call(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _query(asked: Parameters) -> tuple[Any, ...]:
    begin, end = asked.time("begin"), asked.time("end")
    if end <= begin:
        raise UsageError("the parameter end is not after begin")
    width = asked.whole("width", 1600, least=1, most=limits.WIDTH)
    limit = asked.whole("limit", 8192, least=1, most=limits.RECTANGLES)
    return (
        asked.whole("report"),
        begin,
        end,
        width,
        asked.numbers("tracks"),
        limit,
        asked.whole("generation", 0),
    )


def _event(asked: Parameters) -> tuple[Any, ...]:
    return (
        asked.whole("report"),
        asked.text("table"),
        asked.whole("process", most=1 << 31),
        asked.whole("row", most=(1 << 32) - 1),
    )


def _span(asked: Parameters) -> tuple[int, int]:
    begin, end = asked.span()
    if begin is None or end is None:
        raise UsageError("the parameters begin and end are missing")
    return begin, end


def _response(answer: Any) -> Response:
    if isinstance(answer, bytes):
        return Response(answer, media_type=_BINARY)
    return Response(encoded(answer), media_type="application/json")


def _told(endpoint: _Endpoint) -> _Endpoint:
    """Answer with what went wrong, in the words of the error."""

    async def told(request: Request) -> Response:
        return await _safely(request.url.path, endpoint(request))

    return told


async def _safely(path: str, answer: Awaitable[Response]) -> Response:
    try:
        return await answer
    except tuple(kind for kind, _ in _STATUS) as error:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        said = str(error) or "the request is too long"
        gone = (
            isinstance(error, ReportError) and "\n" not in said and any(words in said for words in _NO_FILE)
        )
        return _failure(status, said + _GONE if gone else said)
    except RecursionError:
        return _failure(400, "the question is nested too deeply")
    except OSError as error:
        what = f"cannot read {error.filename or 'the report'}: {error.strerror or type(error).__name__}"
        return _failure(500, what + _GONE)
    except Exception as error:  # a bug: the page goes on, and the terminal of the server shows where it was
        _log.exception("%s failed", path)
        return _failure(500, f"this went wrong in the server: {type(error).__name__}")


def _failure(status: int, error: str) -> Response:
    first, _, hint = error.partition("\n")
    return Response(
        encoded({"error": first, **({"hint": hint} if hint else {})}),
        status_code=status,
        media_type="application/json",
    )


async def _not_found(request: Request, error: Exception) -> Response:
    return _missing(request.url.path)


def _missing(path: str) -> Response:
    return _failure(404, f"there is no {path[:200]} here")


async def _not_allowed(request: Request, error: Exception) -> Response:
    return _failure(405, f"{request.url.path[:200]} is not asked by {request.method}")


def _page(file: File | Path) -> _Endpoint:
    if isinstance(file, Path):
        path = file

        async def stored(request: Request) -> Response:
            return FileResponse(path, media_type=_BINARY)

        return stored
    headers = {"cache-control": "private, max-age=31536000, immutable"} if file.kept else {}

    async def endpoint(request: Request) -> Response:
        return Response(file.content, headers={"content-type": file.kind, **headers})

    return endpoint
