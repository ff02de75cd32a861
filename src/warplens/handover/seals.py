"""The user's private mark on their recordings.

A sender cannot make it, so reports without it are read and never written.

The key is a random file in the user's folder for state; a seal is a keyed hash of a text. Without such a folder there are no seals.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    from _blake2 import blake2b  # hashlib would load OpenSSL into the program that records itself
except ImportError:
    from hashlib import blake2b

from warplens.disk.folder import Folder
from warplens.handover import links, untrusted

_SIZE = 32  # bytes


def sealed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts with this user's seal among them.

    It is empty if the user has no key and cannot get one.
    """
    key = _key() or _made()
    return {**_plain(facts), "seal": "" if key is None else _seal(key, facts)}


def is_own(facts: Mapping[str, Any]) -> bool:
    """Say whether this user sealed these very facts."""
    key = _key() if facts.get("seal") else None
    try:
        return key is not None and facts["seal"] == _seal(key, facts)
    except RecursionError:  # nothing of ours is that deep
        return False


def _seal(key: bytes, facts: Mapping[str, Any]) -> str:
    text = json.dumps(_plain(facts), sort_keys=True)
    return blake2b(text.encode(), key=key, digest_size=16).hexdigest()


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "seal"}


def _folder() -> Path | None:
    """Return the folder of the key.

    None if the user has no home: with `sudo -E`, it is another's.
    """
    named = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111 - no error if there is no home
    state = Path(named)
    try:
        nearest = next(folder for folder in (state, *state.parents) if folder.is_dir())
        return state / "warplens" if state.is_absolute() and nearest.stat().st_uid == os.geteuid() else None
    except (OSError, StopIteration):
        return None


def _key() -> bytes | None:
    folder = _folder()
    if folder is None or not links.is_private(folder):
        return None
    try:
        key = untrusted.read(folder / "key", _SIZE)
    except OSError:
        return None
    return key if len(key) == _SIZE else None


def _made() -> bytes | None:
    """Make the key, and return the one that is there then: another recording may begin at the same time."""
    folder = _folder()
    if folder is None:
        return None
    try:
        with Folder(folder, create=True) as opened:
            opened.create_whole("key", os.urandom(_SIZE))
    except OSError:
        pass  # another was faster, or there is no place for one
    return _key()
