"""Builds the wheel: build_wheel.py BINARY DIRECTORY [MACHINE]

Writes DIRECTORY/fiord-VERSION-py3-none-PLATFORM.whl, with the module, and the static BINARY as a script; prints its path.

Invariant: the same bytes for the same files: sorted, without the times and owners of the machine that builds.
"""

import base64
import hashlib
import os
import re
import sys
import zipfile
from typing import Dict, List, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

#: The first time that a ZIP archive can have.
EPOCH = (1980, 1, 1, 0, 0, 0)


def version() -> str:
    """The version of the workspace."""
    with open(os.path.join(ROOT, "Cargo.toml"), encoding="utf-8") as file:
        found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"$', file.read(), re.MULTILINE)
    if found is None:
        raise SystemExit("Cargo.toml: no version below [workspace.package]")
    return found.group(1)


def tags(machine: str) -> List[str]:
    """The platforms. A static binary needs no C library, so it runs with either; these are the oldest that pip knows of
    both, and the name of the first that pips before 20.3 know.
    """
    return [f"manylinux2014_{machine}", f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"]


def metadata(release: str) -> bytes:
    """METADATA, with the guide as description."""
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        description = file.read()
    lines = [
        "Metadata-Version: 2.1",
        "Name: fiord",
        f"Version: {release}",
        "Summary: A storage I/O tester for Linux: fio's job files and outputs, numbers you can believe",
        "Home-page: https://github.com/fiord-io/fiord",
        "License: MIT OR Apache-2.0",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: 3",
        "Classifier: Typing :: Typed",
        "Requires-Python: >=3.9",
        "Provides-Extra: pandas",
        "Requires-Dist: pandas; extra == 'pandas'",
        "Description-Content-Type: text/markdown",
    ]
    return ("\n".join(lines) + "\n\n" + description).encode()


def contents(binary: str, release: str, platforms: List[str]) -> Dict[str, Tuple[bytes, int]]:
    """The files of the wheel but for RECORD: their bytes and modes."""
    info = f"fiord-{release}.dist-info"
    wheel = ["Wheel-Version: 1.0", "Generator: fiord", "Root-Is-Purelib: false"]
    wheel += [f"Tag: py3-none-{platform}" for platform in platforms]
    files = {
        f"{info}/METADATA": (metadata(release), 0o644),
        f"{info}/WHEEL": (("\n".join(wheel) + "\n").encode(), 0o644),
    }
    module = os.path.join(HERE, "src", "fiord")
    sources = [(f"fiord/{name}", os.path.join(module, name), 0o644) for name in os.listdir(module)]
    sources = [source for source in sources if source[0].endswith((".py", ".typed"))]
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        sources.append((f"{info}/licenses/{name}", os.path.join(ROOT, name), 0o644))
    sources.append((f"fiord-{release}.data/scripts/fiord", binary, 0o755))
    for name, path, mode in sources:
        with open(path, "rb") as file:
            files[name] = (file.read(), mode)
    return files


def record(files: Dict[str, Tuple[bytes, int]], name: str) -> bytes:
    """RECORD: a digest and the length of each file, but for its own."""
    lines = []
    for path, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    return ("".join(lines) + f"{name},,\n").encode()


def build(binary: str, directory: str, machine: str) -> str:
    """Builds the wheel; returns its path."""
    release, platforms = version(), tags(machine)
    files = contents(binary, release, platforms)
    listing = f"fiord-{release}.dist-info/RECORD"
    listed = record(files, listing)
    path = os.path.join(directory, f"fiord-{release}-py3-none-{'.'.join(platforms)}.whl")
    partial = f"{path}.partial"
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as wheel:
        # RECORD is last, as the specification of wheels recommends for dist-info.
        for name, (content, mode) in [*sorted(files.items()), (listing, (listed, 0o644))]:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # Unix, whatever builds it: the mode of a regular file.
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, content)
    os.replace(partial, path)
    return path


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    print(build(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else "x86_64"))
