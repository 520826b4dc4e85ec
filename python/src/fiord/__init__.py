"""fiord, a storage I/O tester for Linux, from Python: run jobs, read reports, compare them.

    import fiord

    report = fiord.run({"reads": {"rw": "randread", "size": "64m", "filename": "data"}})
    print(report.jobs["reads"].read.iops)

Figures have the units of their names: I/Os per second (``iops``), bytes per second (``bytes_per_s``), nanoseconds
(``_ns``). A figure that is not known is NaN, a count that is not known is None.
"""

from ._binary import binary
from ._compare import Change, Comparison, Condition, Recorded, compare
from ._errors import BinaryMissing, FiordError, Interrupted, JobFailed, NotAReport
from ._read import read
from ._report import Direction, Finding, Job, Jobs, Latency, Report
from ._run import run

__all__ = [
    "BinaryMissing",
    "Change",
    "Comparison",
    "Condition",
    "Direction",
    "Finding",
    "FiordError",
    "Interrupted",
    "Job",
    "JobFailed",
    "Jobs",
    "Latency",
    "NotAReport",
    "Recorded",
    "Report",
    "binary",
    "compare",
    "read",
    "run",
]
