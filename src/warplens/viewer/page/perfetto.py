"""The page that hands a trace to a Perfetto UI.

It opens the UI and sends the file by postMessage, so that the trace leaves no machine.

https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui has the protocol: `PING` until `PONG`, then the buffer.
"""

from __future__ import annotations

import html
from urllib.parse import urlsplit

from warplens.errors import UsageError
from warplens.viewer.bundle import File

UI = "https://ui.perfetto.dev"
TRACE = "/trace.perfetto-trace"

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="dark light"><title>{title} – warplens</title>
<link rel="stylesheet" href="/perfetto.css">
<main><h1>{title}</h1>
<p>This page gives the trace to the Perfetto UI at <code>{ui}</code>, from browser window to browser window: it is not uploaded.</p>
<p><button id="open" data-ui="{ui}" data-title="{title}">Open in Perfetto</button></p>
<p id="state" role="status">Reading the trace …</p></main>
<script type="module" src="/perfetto.js"></script></html>
"""
_STYLE = """:root { font: 16px/1.5 system-ui, sans-serif; } main { max-width: 40rem; margin: 4rem auto; padding: 0 1rem; }
button { font: inherit; padding: .5rem 1rem; } h1 { overflow-wrap: anywhere; }
"""
_SCRIPT = """// Sends the trace to the Perfetto UI: PING until it answers PONG, then the buffer.
// A module: a function of this page that is called like one of the window's must not take its place.
const button = document.getElementById("open");
const state = document.getElementById("state");
const ui = button.dataset.ui;
const trace = fetch("%s").then((answer) => {
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.arrayBuffer();
});
const say = (text) => { state.textContent = text; };

async function handOver() {
  const other = window.open(ui);
  if (other === null) {
    say("The browser did not allow a new window: press the button.");
    return;
  }
  say("Waiting for the Perfetto UI …");
  const buffer = await trace;
  const timer = setInterval(() => other.postMessage("PING", ui), 100);
  const hear = (message) => {
    if (message.source !== other || message.origin !== ui || message.data !== "PONG") return;
    clearInterval(timer);
    window.removeEventListener("message", hear);
    const title = button.dataset.title;
    other.postMessage({ perfetto: { buffer, title, fileName: `${title}.perfetto-trace` } }, ui);
    say("The Perfetto UI has the trace. This server may be stopped.");
  };
  window.addEventListener("message", hear);
}

button.addEventListener("click", handOver);
trace.then(() => { say("Ready."); return handOver(); }).catch((error) => say(String(error)));
"""


def address_of(text: str) -> str:
    """Return the origin of a Perfetto UI. Raises UsageError for what is not an address of one."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        raise UsageError(f"{text!r} is not an address of a Perfetto UI: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"{text!r} is not an address of a Perfetto UI; write for example http://localhost:10000."
        )
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{name}{port}"


def pages(title: str, ui: str) -> dict[str, File]:
    """Return the files of the page by path."""
    text = _PAGE.format(title=html.escape(title), ui=html.escape(ui))
    return {
        "/": File(text.encode(), "text/html; charset=utf-8", False),
        "/perfetto.js": File((_SCRIPT % TRACE).encode(), "text/javascript; charset=utf-8", False),
        "/perfetto.css": File(_STYLE.encode(), "text/css; charset=utf-8", False),
    }
