"""Every error that warplens raises on purpose.

WarplensError
├── UsageError          the caller asked for something that does not exist or fit   (exit 2)
├── ReportError         a report cannot be opened, finished or written              (exit 1)
│   ├── NotAReport      the path is not a report
│   └── NewerReport     a later warplens wrote it
├── SpoolError          a spool file is not one, or is broken beyond reading        (exit 1)
├── QueryError          a query was refused or failed                               (exit 1)
├── MissingData         the report lacks the table a question needs                 (exit 1)
└── CaptureError        the program cannot be recorded                              (exit 1)
    └── NotStarted      the program cannot be started                               (exit 126, 127)

Messages say what happened, where, and what to do next.
"""

from __future__ import annotations


class WarplensError(Exception):
    """Base of all; `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(WarplensError):
    """The caller asked for something that does not exist or does not fit."""

    exit_code = 2


class ReportError(WarplensError):
    """A report cannot be opened, finished or written."""


class NotAReport(ReportError):
    """The path is not a report directory."""


class NewerReport(ReportError):
    """The report was written by a later version of warplens."""


class SpoolError(WarplensError):
    """A spool file is not one, or is broken beyond reading."""


class QueryError(WarplensError):
    """A query was refused or failed."""


class MissingData(WarplensError):
    """The report lacks the data that a question needs."""


class CaptureError(WarplensError):
    """The program cannot be recorded."""


class NotStarted(CaptureError):
    """The program cannot be started.

    `exit_code` is a shell's: 127 not found, 126 found but not executable.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
