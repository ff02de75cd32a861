"""Ask a report: tables as Arrow, SQL, selections in time and by NVTX range, interval algebra."""

from __future__ import annotations

from warplens.report.report import Report, open
from warplens.report.selection import Selection, selected_ranges

__all__ = ["Report", "Selection", "open", "selected_ranges"]
