"""Encodes recording options for the agents, and names capture ranges."""

from __future__ import annotations

import os

from warplens.errors import UsageError
from warplens.recording.agent.library import CaptureSettings
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.options.cpu_settings import cpu_settings
from warplens.recording.options.cuda_settings import begins_later, cuda_settings

TRIGGERS = {"none": 0, "nvtx": 1, "cudaProfilerApi": 2}
_INCLUDE, _EXCLUDE = 1, 2
_TEXTS_SIZE = 4096  # kControlTextsSize in format.h


def settings(options: CaptureOptions) -> CaptureSettings:
    """Return what the control file says of `options`; UsageError if it cannot say that."""
    trigger = options.capture_range
    if options.start_later and trigger == "none":
        trigger = "cudaProfilerApi"  # so that `with warplens.capture():` counts in a program that waits for commands
    message, domain, any_domain = (
        capture_name(options.nvtx_capture or "") if trigger == "nvtx" else ("", "", False)
    )
    domains = options.domains_included or options.domains_excluded
    if sum(len(os.fsencode(text)) + 1 for text in (message, domain, *domains)) > _TEXTS_SIZE:
        raise UsageError(
            f"The names of the capture range and of the NVTX domains take more than {_TEXTS_SIZE} bytes together."
        )
    return CaptureSettings(
        open=not begins_later(options),
        trigger=0 if options.delay else TRIGGERS[trigger],  # the director arms it when the delay is over
        window_limit=_limit(options),
        trigger_closes=options.range_end != "none",
        any_domain=any_domain,
        filter=_INCLUDE if options.domains_included else _EXCLUDE if options.domains_excluded else 0,
        keep_ns=round((options.keep_last or 0) * 1e9),
        max_bytes=options.max_size or 0,
        message=message,
        domain=domain,
        domains=tuple(domains),
        cuda=cuda_settings(options),
        cpu=cpu_settings(options),
    )


def capture_name(text: str) -> tuple[str, str, bool]:
    r"""Return message, domain and whether any domain will do, of `MESSAGE`, `MESSAGE@DOMAIN` or `MESSAGE@*`.

    No domain is the default one, "". `\@` is an @ in a name, `\\` a backslash, `\*` a domain called *. UsageError for what is not a name.
    """
    parts = split_escaped(text, "@")
    if len(parts) > 2:
        raise UsageError(rf"-p {text}: write MESSAGE@DOMAIN, with \@ for an @ that is part of a name.")
    if not parts[0]:
        raise UsageError(
            f"-p {text}: the message of the range is missing. For example: -p step, -p step@training, -p 'step@*'."
        )
    any_domain = parts[1:] == ["*"]
    return unescaped(parts[0]), "" if any_domain else unescaped("".join(parts[1:])), any_domain


def split_escaped(text: str, separator: str) -> list[str]:
    """Split at each `separator` that has no backslash before it; the backslashes stay."""
    parts, escaped = [""], False
    for character in text:
        if character == separator and not escaped:
            parts.append("")
        else:
            parts[-1] += character
        escaped = character == "\\" and not escaped
    return parts


def unescaped(text: str) -> str:
    """Return `text` with each backslash taken for the character behind it."""
    out, escaped = "", False
    for character in text:
        if character == "\\" and not escaped:
            escaped = True
            continue
        out, escaped = out + character, False
    return out + ("\\" if escaped else "")


def _limit(options: CaptureOptions) -> int:
    """Maximum number of windows that the trigger opens, 0 = any number."""
    if options.capture_range == "none":
        return 0
    return options.range_count if options.range_end in ("repeat", "repeat-shutdown") else 1
