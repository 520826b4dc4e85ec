"""Compares results by ``fiord compare``.

Invariant: fiord sees files by names of ours alone, so that no character of a path means anything to it.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._binary import Path, call
from ._errors import FiordError
from ._report import Document, Report, number, table


@dataclass(frozen=True)
class Recorded:
    """A run or study in fiord's history: its number, ``last``, ``last~1``, or its tag."""

    name: str


#: A report, the path of one, or a run of the history.
Result = Union[Report, Recorded, Path]


@dataclass(frozen=True)
class Change:
    """How one figure differs. ``iops`` is in I/Os per second, ``bw`` in bytes per second, all others in ns; an interval
    of NaN says that noise is not known. ``verdict`` is ``better``, ``worse``, ``same``, ``cannot tell`` or
    ``not comparable``.
    """

    row: str
    figure: str
    from_name: str
    to_name: str
    from_value: float
    to_value: float
    change_percent: float
    change_low: float
    change_high: float
    verdict: str
    obstacles: Tuple[str, ...]
    raw: Document = field(repr=False)


@dataclass(frozen=True)
class Condition:
    """A condition of ``fail_if``. ``decision`` is ``ok``, ``undecided`` or ``holds``, ``why`` the figure behind it."""

    condition: str
    decision: str
    why: str


@dataclass(frozen=True)
class Comparison:
    """The changes from the first result to the others, a sentence for each of these, and the conditions. ``status`` is
    0, 6 (a condition is undecided) or 8 (one holds).
    """

    changes: Tuple[Change, ...]
    sentences: Tuple[str, ...]
    conditions: Tuple[Condition, ...]
    status: int
    raw: Document = field(repr=False)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each change. Raises ImportError without pandas."""
        return table([dict(row) for row in self.raw.get("rows") or []])


def compare(
    a: Union[Result, Sequence[Result]],
    b: Union[Result, Sequence[Result]],
    *others: Union[Result, Sequence[Result]],
    fail_if: Iterable[str] = (),
    margin: Optional[float] = None,
    across: Iterable[str] = (),
    binary: Optional[Path] = None,
) -> Comparison:
    """Compares results with the first of them.

    Each is a Report, the path of a report of fiord or fio in any format, a Recorded run, or a sequence of these, which
    are repetitions of one result. ``fail_if`` are conditions (``"read.p99 > +10%"``), ``margin`` is in percent, ``across``
    are differences to compare in spite of (``"host"``). Raises FiordError if fiord refuses, FileNotFoundError if a file is
    not there.
    """
    arguments = ["compare", "--json"]
    conditions = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    arguments += [f"--fail-if={condition}" for condition in conditions]
    arguments += [] if margin is None else [f"--margin={float(margin):g}%"]
    listed = [across] if isinstance(across, str) else list(across)
    arguments += [f"--across={','.join(listed)}"] if listed else []
    with tempfile.TemporaryDirectory(prefix="fiord-") as directory:
        names: Dict[str, str] = {}
        given = [_named(result, directory, f"{at}", names) for at, result in enumerate((a, b, *others))]
        ended = call(binary, [*arguments, "--", *given], cwd=directory)
    document = _document(ended.stdout)
    if document is None or ended.status not in (0, 6, 8):
        raise FiordError(ended.status, _renamed(ended.said, names))
    return _comparison(document, ended.status, names)


def _document(stdout: bytes) -> Optional[Dict[str, Any]]:
    try:
        document: Any = json.loads(stdout)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _named(result: Union[Result, Sequence[Result]], directory: str, at: str, names: Dict[str, str]) -> str:
    """What fiord is given for a result; ``names`` learns what it stands for."""
    if isinstance(result, Sequence) and not isinstance(result, str):
        if not result:
            raise ValueError("a result without repetitions: give at least one")
        inner: Dict[str, str] = {}
        parts = [_named(each, directory, f"{at}-{part}", inner) for part, each in enumerate(result)]
        names.update(inner)
        names[",".join(parts)] = ",".join(inner.get(part, part) for part in parts)
        return ",".join(parts)
    if isinstance(result, Recorded):
        if not result.name or any(mark in result.name for mark in ",\0/"):
            raise ValueError(f"{result.name!r}: not the name of one recorded run")
        return result.name
    # With a slash, so that it is no tag.
    name = f"./result-{at}"
    place = os.path.join(directory, name)
    if isinstance(result, Report):
        with open(place, "wb") as file:
            file.write(json.dumps(result.raw).encode() if result.source is None else result.source)
        names[name] = f"report {at}"
    else:
        path = os.path.abspath(os.fspath(result))
        # The error of a file that is not there is Python's.
        os.stat(path)
        os.symlink(path, place)
        names[name] = os.fspath(result)
    return name


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with the names that the caller knows, the longest first: one may be the beginning of another."""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text


def _comparison(document: Dict[str, Any], status: int, names: Mapping[str, str]) -> Comparison:
    for result in document.get("results") or []:
        result["name"] = names.get(result["name"], result["name"])
    rows: List[Dict[str, Any]] = document.get("rows") or []
    for row in rows:
        row["from"] = names.get(row["from"], row["from"])
        row["to"] = names.get(row["to"], row["to"])
    document["sentences"] = [_renamed(sentence, names) for sentence in document.get("sentences") or []]
    return Comparison(
        changes=tuple(_change(row) for row in rows),
        sentences=tuple(document["sentences"]),
        conditions=tuple(
            Condition(each["condition"], each["decision"], each.get("why") or "")
            for each in document.get("conditions") or []
        ),
        status=status,
        raw=document,
    )


def _change(row: Dict[str, Any]) -> Change:
    return Change(
        row=row["row"],
        figure=row["figure"],
        from_name=row["from"],
        to_name=row["to"],
        from_value=number(row, "from_value"),
        to_value=number(row, "to_value"),
        change_percent=number(row, "change_percent"),
        change_low=number(row, "change_low"),
        change_high=number(row, "change_high"),
        verdict=row["verdict"],
        obstacles=tuple(row.get("obstacles") or ()),
        raw=row,
    )
