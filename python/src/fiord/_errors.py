"""The exceptions.

Invariant: what was measured before a failure is in the exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._report import Report


class FiordError(Exception):
    """fiord refused or failed.

    ``status`` is its exit status (negative: ended by that signal), ``said`` what it wrote to standard error.
    """

    def __init__(self, status: int, said: str) -> None:
        super().__init__(status, said)
        self.status = status
        self.said = said

    def __str__(self) -> str:
        return self.said or f"fiord ended with status {self.status}"


class JobFailed(FiordError):
    """A job failed. ``report`` has what was measured; ``error`` of its jobs says which of them failed."""

    def __init__(self, status: int, said: str, report: Report) -> None:
        super().__init__(status, said)
        self.report = report


class NotAReport(FiordError):
    """A file is not a report of a run, or fiord does not know its format."""


class BinaryMissing(FiordError):
    """There is no program ``fiord``."""

    def __init__(self, said: str) -> None:
        super().__init__(127, said)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C (in a notebook: "interrupt the kernel") ended a run.

    ``report`` is what was measured until then; None if the run had not begun.
    """

    def __init__(self, report: Optional[Report]) -> None:
        super().__init__("the run was interrupted; what was measured is in the attribute `report`")
        self.report = report
