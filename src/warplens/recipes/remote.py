"""Reports in object storage, by fsspec: `s3://BUCKET/ranks/`, `gs://…`, `https://…`.

A worker copies one report into a temporary folder, reads it and removes it. The objects' sizes and
tags stand for the content, so that a stored summary needs no copy.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from warplens.errors import ReportError, UsageError
from warplens.handover.naming import MANIFESTS, PENDING, SUFFIX, TABLES

_FOLDERS = (MANIFESTS, TABLES)  # of a report, that are read


def listed(url: str) -> list[str]:
    """Return the URLs of the reports that `url` means: itself, or the reports in that folder, by name.

    UsageError if the storage cannot be read, or fsspec does not know it.
    """
    storage, root = _storage(url)
    try:
        names = [str(name).rstrip("/") for name in storage.ls(root, detail=False)]
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {url}: {error}.") from error
    inside = {name.rpartition("/")[2] for name in names}
    reports = sorted(name for name in inside if name.endswith(SUFFIX))
    if inside & {MANIFESTS, PENDING} or not reports:
        return [url.rstrip("/")]
    return [f"{url.rstrip('/')}/{name}" for name in reports]


def content(url: str) -> str:
    """Return a hash of the names, sizes and tags of a report's objects. ReportError, OSError."""
    digest = hashlib.sha256(f"{url}\n".encode())
    for name, facts in _objects(url):
        tag = next(
            (facts[key] for key in ("ETag", "etag", "md5Hash", "mtime", "created") if facts.get(key)), ""
        )
        digest.update(f"{name} {facts.get('size')} {tag}\n".encode())
    return digest.hexdigest()


@contextmanager
def copied(url: str) -> Iterator[Path]:
    """Yield the path of a copy of a report. ReportError if it cannot be read."""
    storage, _ = _storage(url)
    with tempfile.TemporaryDirectory(prefix="warplens-") as folder:
        report = Path(folder) / url.rpartition("/")[2]
        try:
            for name, facts in _objects(url):
                target = report / name if name else report
                target.parent.mkdir(parents=True, exist_ok=True)
                storage.get_file(facts["name"], str(target))
        except (OSError, ValueError) as error:
            raise ReportError(f"cannot read {url}: {error}") from error
        yield report


def _objects(url: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of a report, or the one of a file of another tool, each with its name within it."""
    storage, root = _storage(url)
    objects = {str(name): facts for name, facts in storage.find(root, detail=True).items()}
    if not objects:
        raise ReportError(f"{url} does not exist")
    result = []
    for name in sorted(objects):
        inside = name.removeprefix(root).lstrip("/")
        parts = PurePosixPath(inside).parts
        if not parts or (parts[0] in _FOLDERS and ".." not in parts):
            result.append((inside, {**objects[name], "name": name}))
    if not result:
        raise ReportError(f"{url} is not a report")
    return result


def _storage(url: str) -> tuple[Any, str]:
    try:
        import fsspec

        storage, root = fsspec.core.url_to_fs(url)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{url} needs {error.name}, which is not installed: pip install {error.name}"
        ) from error
    except ImportError as error:  # fsspec names the package of the protocol
        raise UsageError(f"{url} needs a package that is not installed: {error}") from error
    except ValueError as error:
        raise UsageError(f"{url}: {error}.") from error
    return storage, str(root).rstrip("/")
