"""The program: where it is, and how it is called.

Invariant: arguments reach it as a list, never by a shell; it is always waited for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import List, Mapping, NamedTuple, Optional, Union

from ._errors import BinaryMissing

Path = Union[str, "os.PathLike[str]"]


class Ended(NamedTuple):
    """How the program ended. ``by_us``: Ctrl-C in Python ended it."""

    status: int
    stdout: bytes
    said: str
    by_us: bool


def binary() -> str:
    """The path of the program: ``FIORD_BINARY``, or that of this package, or one in ``PATH``.

    Raises BinaryMissing if there is none.
    """
    named = os.environ.get("FIORD_BINARY")
    if named:
        return named
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    # `pip install --target=DIRECTORY` puts it below the directory of the module.
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
    for directory in [beside, os.path.dirname(sys.executable or ""), *schemes]:
        found = shutil.which("fiord", path=directory) if directory else None
        if found:
            return found
    found = shutil.which("fiord")
    if found:
        return found
    raise BinaryMissing("there is no program fiord: install the wheel of this package, or set FIORD_BINARY to its path")


def call(
    program: Optional[Path],
    arguments: List[str],
    *,
    stdin: Optional[bytes] = None,
    cwd: Optional[Path] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[float] = None,
) -> Ended:
    """Calls the program and waits. After ``timeout`` seconds, or Ctrl-C, it is interrupted once and still waited for,
    so that it reports what it has measured; a second Ctrl-C kills it.
    """
    path = os.path.abspath(program) if program is not None else os.path.abspath(binary())
    environment = None if env is None else {**os.environ, **env}
    try:
        # In a session of its own, so that Ctrl-C on a terminal reaches it once: a second one would make it give up.
        process = subprocess.Popen(
            [path, *arguments],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        if cwd is not None and not os.path.isdir(cwd):
            raise
        raise BinaryMissing(f"{path}: {error.strerror}: set FIORD_BINARY to the path of fiord") from error
    by_us = False
    try:
        try:
            out, said = process.communicate(stdin, timeout)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as why:
            by_us = isinstance(why, KeyboardInterrupt)
            # Not SIGINT, which a program that was started in the background ignores, and so would this one.
            process.terminate()
            out, said = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return Ended(process.returncode, out, said.decode("utf-8", "replace").rstrip("\n"), by_us)
