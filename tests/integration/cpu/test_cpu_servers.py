"""Servers that nobody here wrote, with everything of the CPU side on, under load: each answer is what it is without us."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs.launching import SRC, environment
from tests.support.programs.under_everything import both, counts, same
from tests.support.thorough import alike
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(900)]

APP = """
import hashlib, json
def answer(query):
    return json.dumps({"query": query, "sum": hashlib.sha256(query.encode() * 100).hexdigest()}).encode()
def wsgi(environ, start_response):
    body = answer(environ.get("QUERY_STRING", ""))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
async def asgi(scope, receive, send):
    body = answer(scope["query_string"].decode())
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
"""
# Starts a server on a socket, asks it from several threads, ends it, and tells what it said.
LOAD = """
import hashlib, http.client, signal, socket, subprocess, sys, threading, time
server = subprocess.Popen([sys.executable, "-m", *sys.argv[1:]])
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(100)
        self.sock.connect("s")
def ask(number):
    while server.poll() is None:
        connection = Connection("local")
        try:
            connection.request("GET", f"/?{number}")
            return connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)  # it begins, or a worker has just ended
        finally:
            connection.close()
ask(0)
answers = [None] * 120
def some(first):
    for number in range(first, len(answers), 4):
        answers[number] = ask(number)
threads = [threading.Thread(target=some, args=(first,)) for first in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(hashlib.sha256(b"".join(answers)).hexdigest())
server.send_signal(signal.SIGTERM)
print("ended", server.wait(100))
"""
GUNICORN = (
    "gunicorn",
    "-b",
    "unix:s",
    "--log-level",
    "critical",
    "--timeout",
    "200",
    "--graceful-timeout",
    "100",
)
SERVERS = {
    "gunicorn": (*GUNICORN, "-w", "2", "app:wsgi"),
    "gunicorn with threads": (*GUNICORN, "-w", "2", "--threads", "3", "app:wsgi"),
    "gunicorn that renews its workers": (*GUNICORN, "-w", "2", "--max-requests", "20", "app:wsgi"),
    "uvicorn": ("uvicorn", "--uds", "s", "--log-level", "critical", "--lifespan", "off", "app:asgi"),
}


NEEDED = [pytest.param(name, marks=pytest.mark.require(name.partition(" ")[0])) for name in SERVERS]
# Some versions of uvicorn end by the signal that they were told to end by.
ENDS = {"uvicorn": ("ended 0\n", "ended -15\n")}


@pytest.mark.parametrize("server", alike(NEEDED, NEEDED[0]))
def test_a_server_of_python(server: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "load.py").write_text(LOAD, encoding="utf-8")
    bare, with_us, report = both(tmp_path, sys.executable, "load.py", *SERVERS[server])
    same(bare, with_us)
    assert bare.stdout.endswith(ENDS.get(server, "ended 0\n")), bare.stderr
    found = counts(report)
    assert min(found["osrt"], found["samples"], found["gil"], found["imports"]) > 0, found
    with open_report(report) as opened:
        accepting = opened.sql("SELECT DISTINCT process FROM osrt WHERE name LIKE 'accept%'").to_pylist()
    assert accepting


POSTGRES = """
set -e
folder=$1; tools=$2; export PGHOST=$folder PGPORT=54329 PGUSER=one PGDATABASE=postgres
$tools/initdb -D $folder/data -A trust -U one --no-sync > /dev/null
$tools/pg_ctl -D $folder/data -o "-k $folder -c listen_addresses='' -p 54329" -t 120 -w -l $folder/log start > /dev/null
psql -q -c 'create table things(id int primary key, text text)'
psql -q -c "insert into things select n, md5(n::text) from generate_series(1, 20000) n"
for i in 1 2 3; do
  psql -At -c "select count(*), max(text), sum(length(text)) from things where id % $i = 0" > $folder/answer$i &
done
wait
cat $folder/answer*
psql -q -c 'delete from things where id > 100'
psql -q -c 'vacuum full things'
psql -At -c 'select count(*) from things'
$tools/pg_ctl -D $folder/data -t 120 -m fast -w stop > /dev/null
grep -E 'PANIC|FATAL|terminated by' $folder/log || echo ended well
"""
NOBODY = 65534


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder for a server that does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="warplens-public-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def as_nobody() -> list[str]:
    return (
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    )


def test_postgresql(public: Path) -> None:
    tools = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
    if tools is None or shutil.which("psql") is None or shutil.which("setpriv") is None:
        pytest.skip("there is no PostgreSQL")
    may = subprocess.run(
        [*as_nobody(), sys.executable, "-c", "import warplens.cli"],
        env=environment(),
        cwd=public,
        check=False,
    )
    if may.returncode != 0:
        pytest.skip(f"not everybody may read {SRC} and {sys.executable}")
    script = public / "script"
    script.write_text(POSTGRES, encoding="utf-8")
    env = environment(HOME=str(public), TMPDIR=str(public))
    first, second = public / "first", public / "second"
    command = [*as_nobody(), "sh", "-c", f"mkdir {first} && sh {script} {first} {tools}"]
    bare = subprocess.run(
        command, cwd=public, env=env, text=True, capture_output=True, check=False, timeout=240
    )
    assert (bare.returncode, bare.stdout.splitlines()[-1:]) == (0, ["ended well"]), bare.stderr
    words = [
        *as_nobody(),
        sys.executable,
        "-m",
        "warplens",
        "profile",
        "--light",
        "-q",
        "-o",
        "seen",
        "-t",
        "nvtx,osrt",
        "--osrt-file-access",
    ]
    words += [
        "--sample=process-tree",
        "--python-sampling=true",
        "sh",
        "-c",
        f"mkdir {second} && sh {script} {second} {tools}",
    ]
    with_us = subprocess.run(
        words, cwd=public, env=env, text=True, capture_output=True, check=False, timeout=240
    )
    same(bare, with_us)
    found = counts(public / "seen.warplens")
    assert min(found["osrt"], found["file_access"]) > 0, found
    assert found["processes"] > 10
