"""A server under load with default options, beside the plain server: requests/s, p99, CPU per request.

The server is FastAPI with uvicorn where both are installed, else asyncio of the standard library; each answers with JSON after a
query of SQLite. Four clients in one other process ask again as soon as they have an answer. Server alone, `--light` and default
take turns; ratios are medians over the rounds. The scatter of the server alone says how much of a difference is noise.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import Row

_OURS = [sys.executable, "-m", "warplens", "profile", "-q", "-f", "-o"]
_COMMON = """
import json, resource, sqlite3, sys
base = sqlite3.connect(":memory:", check_same_thread=False)
base.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
base.executemany("INSERT INTO items VALUES (?, ?, ?)", ((n, f"item {n}", n * 1.5) for n in range(1000)))
def answer(n):
    rows = base.execute("SELECT * FROM items WHERE id >= ? ORDER BY price DESC LIMIT 20", (n % 980,)).fetchall()
    return {"items": [{"id": i, "name": name, "price": price} for i, name, price in rows]}
def report():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu": used.ru_utime + used.ru_stime}
"""
_FASTAPI = (
    _COMMON
    + """
import fastapi, socket, uvicorn
app = fastapi.FastAPI()
@app.get("/items/{n}")
async def items(n: int):
    return answer(n)
@app.get("/used")
async def used():
    return report()
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listening])
"""
)
_ASYNCIO = (
    _COMMON
    + """
import asyncio, signal
async def serve(reader, writer):
    while line := await reader.readline():
        while (await reader.readline()).strip():
            pass
        path = line.split()[1].decode()
        body = json.dumps(report() if path == "/used" else answer(int(path.rpartition("/")[2]))).encode()
        writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body) + body)
        await writer.drain()
    writer.close()
async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
asyncio.run(main())
"""
)
_CLIENTS = """
import http.client, json, sys, threading, time
port, seconds = int(sys.argv[1]), float(sys.argv[2])
taken = []
def ask(number):
    link = http.client.HTTPConnection("127.0.0.1", port)
    mine, n = [], number
    while time.perf_counter() < end:
        begin = time.perf_counter()
        link.request("GET", f"/items/{n}")
        link.getresponse().read()
        mine.append(time.perf_counter() - begin)
        n += 7
    taken.extend(mine)
def used():
    link = http.client.HTTPConnection("127.0.0.1", port)
    link.request("GET", "/used")
    return json.loads(link.getresponse().read())["cpu"]
end = time.perf_counter() + 1  # warm
ask(0)
taken.clear()
before, begin = used(), time.perf_counter()
end = begin + seconds
threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
passed, cpu = time.perf_counter() - begin, used() - before
taken.sort()
print(json.dumps({"time": passed / len(taken), "p99": taken[len(taken) * 99 // 100], "cpu": cpu / len(taken)}))
"""
_FIGURES = {
    "time": ("time for each request under load", "us", 1e6, None),
    "p99": ("p99 of a request", "ms", 1e3, None),
    "cpu": ("CPU time of the server for each request", "us", 1e6, 1.005),
}


def run(quick: bool) -> Iterator[Row]:
    """Measure it: two minutes; `quick`: half a minute, for a look."""
    seconds, rounds = (2.0, 3) if quick else (5.0, 7)
    has_fastapi = all(importlib.util.find_spec(name) for name in ("fastapi", "uvicorn"))
    name, text = ("FastAPI", _FASTAPI) if has_fastapi else ("asyncio", _ASYNCIO)
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
        server = Path(folder, "server.py")
        server.write_text(text)
        report = str(Path(folder, "x"))
        ways = {"alone": [], "light": [*_OURS, report, "--light"], "default": [*_OURS, report]}
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, words in ways.items():
                taken[way].append(_measure([*words, sys.executable, str(server)], seconds))
    for figure, (what, unit, scale, budget) in _FIGURES.items():
        alone = [one[figure] for one in taken["alone"]]
        plain = statistics.median(alone)
        noise = (max(alone) - min(alone)) / plain / 2
        for way in ("light", "default"):
            ratio = statistics.median(
                one[figure] / other for one, other in zip(taken[way], alone, strict=True)
            )
            yield Row(
                f"{name} server, {what}, {way}",
                ratio * plain * scale,
                unit,
                "the server alone",
                plain * scale,
                budget if way == "default" else None,
                note=f"median of {rounds} pairs; the server alone scatters by {100 * noise:.1f} %",
            )


def _measure(command: list[str], seconds: float) -> dict[str, float]:
    """Start the server, ask it for a while, and end it."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        done = subprocess.run(
            [sys.executable, "-c", _CLIENTS, port, str(seconds)], check=True, capture_output=True, text=True
        )
    finally:
        server.terminate()
        server.wait(timeout=60)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
