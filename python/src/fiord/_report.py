"""A report as values.

Invariant: ``raw`` is the document as it was printed; nothing of it is lost or changed.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

NAN = math.nan

#: The parts of a job that transfer data, by their keys in the document.
DIRECTIONS = ("read", "write", "trim", "mixed")

Document = Mapping[str, Any]


def table(rows: List[Dict[str, Any]]) -> Any:
    """A pandas.DataFrame of rows. Raises ImportError if pandas is not installed."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas") from error
    return pandas.DataFrame(rows)


def number(document: Document, key: str) -> float:
    """A figure; NaN if it is not there or null."""
    value = document.get(key)
    return float(value) if isinstance(value, (int, float)) else NAN


def count(document: Document, key: str) -> Optional[int]:
    """A count; None if it is not there or null."""
    value = document.get(key)
    return int(value) if isinstance(value, (int, float)) else None


@dataclass(frozen=True)
class Latency:
    """A latency, in nanoseconds. ``percentiles`` leads from percent (99.9) to nanoseconds, in ascending order."""

    count: Optional[int]
    mean_ns: float
    stddev_ns: float
    min_ns: float
    max_ns: float
    percentiles: Mapping[float, float]

    def percentile(self, percent: float) -> float:
        """A percentile that was measured, in ns. Raises KeyError, which names those that were (``percentile_list``)."""
        try:
            return self.percentiles[float(percent)]
        except KeyError:
            known = ", ".join(f"{percent:g}" for percent in self.percentiles) or "none"
            raise KeyError(f"p{percent:g} was not measured; measured: {known}") from None

    @classmethod
    def of(cls, document: Document) -> Latency:
        """From an object like ``clat_ns``."""
        found = document.get("percentile") or {}
        percentiles = {float(percent): float(value) for percent, value in found.items()}
        return cls(
            count=count(document, "N"),
            mean_ns=number(document, "mean"),
            stddev_ns=number(document, "stddev"),
            min_ns=number(document, "min"),
            max_ns=number(document, "max"),
            percentiles=dict(sorted(percentiles.items())),
        )


@dataclass(frozen=True)
class Direction:
    """What a job did in one direction. Latencies: ``slat`` until issued, ``clat`` from then on, ``lat`` both."""

    iops: float
    bytes_per_s: float
    ios: Optional[int]
    bytes: Optional[int]
    runtime_ms: Optional[int]
    slat: Latency
    clat: Latency
    lat: Latency
    raw: Document = field(repr=False)

    @property
    def latency(self) -> Latency:
        """The completion latency, or the total latency if only that has percentiles or was measured."""
        if self.clat.percentiles:
            return self.clat
        if self.lat.percentiles:
            return self.lat
        return self.clat if self.clat.count != 0 and not math.isnan(self.clat.mean_ns) else self.lat

    @classmethod
    def of(cls, document: Document) -> Direction:
        """From an object like ``read``."""
        return cls(
            iops=number(document, "iops"),
            bytes_per_s=number(document, "bw_bytes"),
            ios=count(document, "total_ios"),
            bytes=count(document, "io_bytes"),
            runtime_ms=count(document, "runtime"),
            slat=Latency.of(document.get("slat_ns") or {}),
            clat=Latency.of(document.get("clat_ns") or {}),
            lat=Latency.of(document.get("lat_ns") or {}),
            raw=document,
        )


@dataclass(frozen=True)
class Job:
    """A job, or a group of jobs with ``group_reporting``. ``error`` is 0, or an error number if it failed; ``host`` is
    set in reports of several hosts. ``directions`` has those that the report has, also those without I/O.
    """

    name: str
    host: Optional[str]
    error: int
    options: Mapping[str, str]
    directions: Mapping[str, Direction]
    sync: Latency
    raw: Document = field(repr=False)

    @property
    def read(self) -> Direction:
        """Reads. Raises KeyError if the report does not have them apart (``unified_rw_reporting``)."""
        return self._direction("read")

    @property
    def write(self) -> Direction:
        """Writes. Raises KeyError as ``read`` does."""
        return self._direction("write")

    @property
    def trim(self) -> Direction:
        """Trims. Raises KeyError as ``read`` does."""
        return self._direction("trim")

    @property
    def mixed(self) -> Direction:
        """All directions as one. Raises KeyError unless the job had ``unified_rw_reporting``."""
        return self._direction("mixed")

    def _direction(self, name: str) -> Direction:
        try:
            return self.directions[name]
        except KeyError:
            there = ", ".join(self.directions) or "none"
            raise KeyError(f"job {self.name!r}: the report has no direction {name!r}; it has: {there}") from None

    @classmethod
    def of(cls, document: Document) -> Job:
        """From an object of ``jobs`` or ``client_stats``."""
        directions = {name: Direction.of(document[name]) for name in DIRECTIONS if isinstance(document.get(name), dict)}
        return cls(
            name=str(document.get("jobname", "")),
            host=document.get("hostname"),
            error=int(document.get("error") or 0),
            options=dict(document.get("job options") or {}),
            directions=directions,
            sync=Latency.of((document.get("sync") or {}).get("lat_ns") or {}),
            raw=document,
        )


class Jobs(Sequence[Job]):
    """The jobs, in the order of the report: by position, or by name."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = tuple(jobs)

    @overload
    def __getitem__(self, key: Union[int, str]) -> Job: ...

    @overload
    def __getitem__(self, key: slice) -> Jobs: ...

    def __getitem__(self, key: Union[int, str, slice]) -> Union[Job, Jobs]:
        """By position (IndexError), or by name: the only job of it (KeyError if there is none, or if there are several)."""
        if isinstance(key, slice):
            return Jobs(self._jobs[key])
        if isinstance(key, int):
            return self._jobs[key]
        named = [job for job in self._jobs if job.name == key]
        if len(named) == 1:
            return named[0]
        if named:
            raise KeyError(f"{len(named)} jobs are named {key!r}: take one by its position, or use group_reporting")
        raise KeyError(f"no job is named {key!r}; there are: {', '.join(repr(job.name) for job in self._jobs)}")

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    def __repr__(self) -> str:
        return f"Jobs({list(self._jobs)!r})"


@dataclass(frozen=True)
class Finding:
    """Why a figure may not mean what it seems to. ``severity`` is ``note``, ``caution`` or ``void``; docs/findings.md
    explains each ``code``.
    """

    code: str
    severity: str
    subject: str
    option: Optional[str]
    sentence: str
    remedy: str
    figures: Mapping[str, float]

    @classmethod
    def of(cls, document: Document) -> Finding:
        """From an object of ``findings``."""
        return cls(
            code=str(document.get("code", "")),
            severity=str(document.get("severity", "")),
            subject=str(document.get("subject") or ""),
            option=document.get("option"),
            sentence=str(document.get("sentence") or ""),
            remedy=str(document.get("remedy") or ""),
            figures={str(each.get("name")): number(each, "value") for each in document.get("figures") or []},
        )


@dataclass(frozen=True)
class Report:
    """A run. ``status`` is the exit status of fiord (None of a report that was read), ``said`` what it wrote to standard
    error, ``raw`` the whole document (docs/json.md, "Runs"). ``source`` is the content of a file in another format, of
    which ``raw`` has the figures alone.
    """

    jobs: Jobs
    findings: Tuple[Finding, ...]
    status: Optional[int]
    said: str
    raw: Document = field(repr=False)
    source: Optional[bytes] = field(default=None, repr=False)

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal or ``timeout`` ended the run: its figures are those until then."""
        return self.status is not None and (self.status < 0 or self.status > 128)

    @property
    def void(self) -> Tuple[Finding, ...]:
        """The findings because of which figures do not measure what the jobs specify."""
        return tuple(finding for finding in self.findings if finding.severity == "void")

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each job and direction that did I/O: ``job``, ``direction``, ``iops``,
        ``bytes_per_s``, ``ios``, ``mean_ns`` and percentiles such as ``p99_ns``. Raises ImportError without pandas.
        """
        return table(self.rows())

    def rows(self) -> List[Dict[str, Any]]:
        """The rows of ``to_pandas`` as dictionaries."""
        rows: List[Dict[str, Any]] = []
        for job in self.jobs:
            for name, direction in job.directions.items():
                if direction.ios == 0:
                    continue
                latency = direction.latency
                row: Dict[str, Any] = {} if job.host is None else {"host": job.host}
                row.update(job=job.name, direction=name, iops=direction.iops, bytes_per_s=direction.bytes_per_s)
                row.update(ios=direction.ios, mean_ns=latency.mean_ns)
                row.update({f"p{percent:g}_ns": value for percent, value in latency.percentiles.items()})
                rows.append(row)
        return rows

    @classmethod
    def of(cls, document: Document, status: Optional[int] = None, said: str = "", source: Optional[bytes] = None) -> Report:
        """From the document of a run on one host or on several."""
        jobs = document.get("jobs") or document.get("client_stats") or []
        return cls(
            jobs=Jobs([Job.of(job) for job in jobs]),
            findings=tuple(Finding.of(finding) for finding in document.get("findings") or []),
            status=status,
            said=said,
            raw=document,
            source=source,
        )
