"""Admits only the browser that has the token, from our own page, by a name of this machine.

All others are refused unread.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from warplens.viewer import limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_COMMON = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
_METHODS = frozenset(("GET", "HEAD", "POST"))
_PAGES = {"ws": "http", "wss": "https"}  # what a page comes by that opens a socket
_REFUSED = 1008  # "policy violation", RFC 6455
_NO_TOKEN = "This is a timeline of warplens. Open the address that `warplens view` printed: it has the token that this page asks for."


class Keys:
    """The token of the address, and the cookie's value that it is exchanged for.

    `cookie`: its name, one for each port.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        self.session = secrets.token_urlsafe(24)
        self.cookie = f"warplens-{port}"
        self._once: set[str] = set()

    def once(self) -> str:
        """Return another token, which works for one address alone and once."""
        token = secrets.token_urlsafe(24)
        self._once.add(token)
        return token

    def enters(self, token: str) -> bool:
        """Whether a token in an address gets the cookie."""
        used = [
            one for one in self._once if hmac.compare_digest(one.encode(), token.encode(errors="replace"))
        ]
        self._once.difference_update(used)
        return bool(used) or self.fits(token)

    def fits(self, token: str) -> bool:
        """Whether it is the token."""
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def known(self, headers: dict[str, str]) -> bool:
        """Whether a request has the cookie, or the token as `Authorization: Bearer`."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.fits(given.strip()):
            return True
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return morsel is not None and hmac.compare_digest(
            morsel.value.encode(errors="replace"), self.session.encode()
        )


class Guard:
    """Passes permitted requests to `app`, and puts the headers of a careful server on every answer.

    `names`: of this machine, beside those of its loopback; any address written as a number too where `remote`.
    """

    def __init__(self, app: App, keys: Keys, names: Iterable[str] = (), *, remote: bool = False) -> None:
        self._app = app
        self._keys = keys
        self._names = _LOOPBACK | {name.lower() for name in names}
        self._remote = remote

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] not in ("http", "websocket"):
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        guarded = _with_headers(send)
        refusal = self._refusal(scope, headers)
        if scope["type"] == "websocket":
            if refusal is None and self._keys.known(headers):
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": _REFUSED})  # before it is accepted: status 403
        elif refusal is not None:
            await _say(guarded, *refusal)
        elif not self._keys.known(headers):
            await self._enter(scope, headers, guarded)
        elif "token" in parse_qs(scope["query_string"].decode("latin-1")) and scope["path"] == "/":
            await self._enter(
                scope, headers, guarded
            )  # in the address of somebody who is known it need not stay there
        else:
            await self._app(scope, _bounded(receive), guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        names = [name for name, _ in scope["headers"] if name.lower() == b"host"]
        host = headers.get("host", "")
        if len(names) != 1 or not self._own(host):
            return (
                403,
                "this is not the name of this server",
                "Open it as http://127.0.0.1 or http://localhost.",
            )
        origin = headers.get("origin")
        scheme = _PAGES.get(scope["scheme"], scope["scheme"])
        if origin is not None and origin.lower() != f"{scheme}://{host}".lower():
            return 403, "the request comes from another page", ""
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and scope["path"] != "/":
            return 403, "the request comes from another page", ""
        method = scope.get("method", "GET")
        if method not in _METHODS:
            return 405, f"there is no {method} here", ""
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limits.BODY:
            return 413, "the request is too long", f"At most {limits.BODY >> 10} KiB."
        return None

    def _own(self, host: str) -> bool:
        """Whether `Host` names this machine. The port may be another one: ssh forwards any."""
        name = _host_name(host)
        if name is None:
            return False
        if name in self._names:
            return True
        try:
            return self._remote and bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    async def _enter(self, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Exchange the token of an address for the cookie."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        if scope["path"] != "/" or scope["method"] != "GET" or not self._keys.enters(given[0]):
            await _say(send, 401, "this needs the token of the server's address", hint=_NO_TOKEN)
            return
        cookie = f"{self._keys.cookie}={self._keys.session}; HttpOnly; SameSite=Strict; Path=/"
        # From a link on another page, a redirect would be followed without the cookie that has just been set.
        linked = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        body = (
            b'<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>warplens</title>'
            if linked
            else b""
        )
        fields = [
            (b"set-cookie", cookie.encode()),
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
        ]
        if not linked:
            fields.append((b"location", b"/"))
        await send({"type": "http.response.start", "status": 200 if linked else 303, "headers": fields})
        await send({"type": "http.response.body", "body": body})


class TooLong(Exception):
    """The body of a request is longer than any that has an answer."""


def _host_name(host: str) -> str | None:
    """Return the name in a `Host` header, in small letters; None if it is none."""
    name, port = host, ""
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return None
        port = rest[1:]
    elif ":" in host:
        name, _, port = host.partition(":")
    if (port and not port.isdecimal()) or not name:
        return None
    return name.lower().removesuffix(".")


def _bounded(receive: Receive) -> Receive:
    """Return a `receive` that raises TooLong once a body, whose length nobody has to say, is too long."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limits.BODY:
            raise TooLong
        return message

    return bounded


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower(): value for name, value in message.get("headers", [])}
            common = {name.encode(): value.encode() for name, value in _COMMON.items()}
            message = {
                **message,
                "headers": [
                    *own.items(),
                    *((name, value) for name, value in common.items() if name not in own),
                ],
            }
        await send(message)

    return guarded


async def _say(send: Send, status: int, error: str, hint: str) -> None:
    body = json.dumps({"error": error, **({"hint": hint} if hint else {})}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
