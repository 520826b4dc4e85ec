"""Runs jobs.

Invariant: options reach fiord as arguments, one each, so that no value is read as another option, section or comment;
none of them can be an option of the program.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Iterable, List, Mapping, Optional, Union

from ._binary import Path, call
from ._errors import FiordError, Interrupted, JobFailed
from ._report import Report

Value = Union[str, int, float]
Sections = Mapping[str, Mapping[str, Value]]

#: Options of the program, which are no options of jobs. An abbreviation of one is refused as well.
PROGRAM_OPTIONS = frozenset(
    """
    parse-only showcmd section readonly warnings-fatal strict max-jobs aux-path alloc-size merge-blktrace-only repeat
    output output-format minimal append-terse terse-version bandwidth-log no-history tag trust fail-if undecided metrics
    live eta eta-interval eta-newline status-interval idle-prof help version cmdhelp enghelp debug crctest cpuclock-test
    memcpytest inflate-log hosts via allow-missing on-lost order group-by connect-timeout layout-timeout start-within
    fan-out push keep-agent sudo shared pods storage-class volume-size block-volume nodes spread context namespace image
    keep-pods print-manifest server daemonize root allow-exec allow-device no-secret client remote-config
    trigger-file trigger-timeout trigger trigger-remote
    """.split()
)

#: Options of jobs that are the beginning of one of the program's.
JOB_OPTIONS_ALL_THE_SAME = frozenset(["ba", "block", "mem"])


def run(
    jobs: Union[Path, Sections],
    *,
    readonly: bool = False,
    trust: str = "on",
    history: bool = True,
    tag: Optional[str] = None,
    repeat: int = 1,
    fail_if: Iterable[str] = (),
    bins: bool = False,
    timeout: Optional[float] = None,
    cwd: Optional[Path] = None,
    env: Optional[Mapping[str, str]] = None,
    binary: Optional[Path] = None,
) -> Report:
    """Runs jobs with fiord, and returns their report.

    ``jobs`` is a mapping from sections to their options, ``{"global": {...}, "reads": {"rw": "randread"}}`` (values are
    strings, numbers, or booleans for 1 and 0); the path of a job file; or the text of one, which is a ``str`` that has a
    line break or begins with ``[``.

    ``readonly`` refuses jobs that write. ``trust`` is ``on``, ``off`` or ``strict``. The run is recorded in the history,
    under the name ``tag``, unless ``history`` is false. ``repeat`` runs the jobs that often. ``fail_if`` are conditions
    (``"read.p99 > 10ms"``), which make the status 8. ``bins`` adds the histograms (``json+``). After ``timeout`` seconds
    the run is interrupted, and the report is of the time until then. ``env`` is added to the environment. ``binary`` is
    the path of another fiord.

    A report is returned with status 0, 3 (``trust="strict"``), 6 and 8 (``fail_if``), and above 128 (interrupted). Raises
    JobFailed (with the report) if a job failed, FiordError if fiord refused, Interrupted (with the report) on Ctrl-C,
    BinaryMissing, and TypeError or ValueError for options that are none of a job's.
    """
    arguments = [f"--output-format={'json+' if bins else 'json'}", f"--trust={trust}"]
    arguments += ["--readonly"] if readonly else []
    arguments += [] if history else ["--no-history"]
    arguments += [] if tag is None else [f"--tag={tag}"]
    arguments += [] if repeat == 1 else [f"--repeat={int(repeat)}"]
    conditions = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    arguments += [f"--fail-if={condition}" for condition in conditions]
    stdin: Optional[bytes] = None
    if isinstance(jobs, Mapping):
        arguments += _arguments_of(jobs)
    elif isinstance(jobs, str) and ("\n" in jobs or jobs.lstrip().startswith("[")):
        arguments.append("-")
        stdin = jobs.encode("utf-8", "surrogateescape")
    else:
        # An absolute path is never taken for an option. It is that of this process, wherever fiord runs.
        arguments.append(os.path.abspath(os.fspath(jobs)))
    ended = call(binary, arguments, stdin=stdin, cwd=cwd, env=env, timeout=timeout)
    report = _report_of(ended.stdout, ended.status, ended.said)
    if ended.by_us:
        raise Interrupted(report)
    if report is None:
        raise FiordError(ended.status, ended.said)
    if ended.status in (1, 2):
        raise JobFailed(ended.status, ended.said, report)
    return report


def _report_of(stdout: bytes, status: int, said: str) -> Optional[Report]:
    """The report in the output; None if there is none."""
    try:
        document: Any = json.loads(stdout)
    except ValueError:
        return None
    return Report.of(document, status, said) if isinstance(document, dict) else None


def _arguments_of(sections: Sections) -> List[str]:
    """The command line of the sections. Those named ``global`` apply to the sections after them."""
    if not any(name != "global" for name in sections):
        raise ValueError("no job: name a section other than global")
    arguments: List[str] = []
    for name, options in sections.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"section {name!r}: a name is a string that is not empty")
        if not isinstance(options, Mapping):
            raise TypeError(f"section {name!r}: expected a mapping of options, not {type(options).__name__}")
        arguments.append(f"--name={name}")
        arguments += [_argument(name, option, value) for option, value in options.items()]
    return arguments


def _argument(section: str, option: str, value: Value) -> str:
    """``--option=value``."""
    if not isinstance(option, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", option):
        raise ValueError(f"section {section!r}: {option!r} is not the name of an option")
    dashed = option.replace("_", "-")
    own = option not in JOB_OPTIONS_ALL_THE_SAME
    if own and any(taken.startswith(dashed) for taken in PROGRAM_OPTIONS | {"name"}):
        raise ValueError(f"section {section!r}: {option}: not an option of jobs; see the arguments of fiord.run")
    if isinstance(value, bool):
        return f"--{option}={int(value)}"
    if not isinstance(value, (str, int, float)):
        raise TypeError(f"section {section!r}: {option}: expected text or a number, not {type(value).__name__}")
    return f"--{option}={value}"
