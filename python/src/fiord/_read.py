"""Reads reports.

Invariant: JSON is read here; every other format by fiord, whose readers are the only ones.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

from ._binary import Path
from ._compare import compare
from ._errors import BinaryMissing, FiordError, NotAReport
from ._report import DIRECTIONS, Report


def read(path: Path, *, binary: Optional[Path] = None) -> Report:
    """Reads a report of fiord or fio.

    JSON has everything that was printed. Of the other formats that ``fiord compare`` reads (normal, terse, JSON of older
    fios), and of studies, the report has those figures of each job that ``fiord compare`` shows: throughput, IOPS, and the
    latencies that the format has. Raises OSError if the file cannot be read, NotAReport if fiord does not know what it is.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        document: Any = json.loads(content)
    except ValueError:
        document = None
    if isinstance(document, dict) and _is_current(document):
        return Report.of(document)
    try:
        # With itself: the figures of the first are those of the file.
        figures = compare(path, path, binary=binary)
    except BinaryMissing:
        raise
    except FiordError as error:
        raise NotAReport(error.status, error.said) from error
    jobs: Dict[str, Dict[str, Any]] = {}
    for change in figures.changes:
        if change.raw.get("from_value") is None:
            continue
        _set(jobs.setdefault(change.row, {"jobname": change.row}), change.figure, change.from_value)
    if not jobs:
        raise NotAReport(1, f"{os.fspath(path)}: it has no figures")
    return Report.of({"jobs": list(jobs.values())}, source=content)


def _is_current(document: Dict[str, Any]) -> bool:
    """Whether it is a run's document with latencies in nanoseconds, as fio prints it since version 3."""
    jobs = document.get("jobs") or document.get("client_stats")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        return False
    parts = [job[name] for job in jobs for name in DIRECTIONS if isinstance(job.get(name), dict)]
    return bool(parts) and all("clat_ns" in part or "lat_ns" in part for part in parts)


def _set(job: Dict[str, Any], figure: str, value: float) -> None:
    """Puts a figure, such as ``read.p99``, where a document of a run has it."""
    direction, _, name = figure.partition(".")
    part = job.setdefault(direction, {})
    latency = part.setdefault("lat_ns" if direction == "sync" else "clat_ns", {})
    if name == "iops":
        part["iops"] = value
    elif name == "bw":
        part["bw_bytes"] = value
    elif name == "mean":
        latency["mean"] = value
    elif name.startswith("p"):
        latency.setdefault("percentile", {})[name[1:]] = value
