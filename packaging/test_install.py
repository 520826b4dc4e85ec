"""Tests of install.sh and of what names the archive: FIORD_BINARY=PATH python3 packaging/test_install.py

Invariant: it downloads from this machine alone, and writes below a temporary directory.
"""

import functools
import hashlib
import http.server
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
with open(os.path.join(ROOT, "Cargo.toml")) as manifest:
    MANIFEST = manifest.read()
VERSION = re.search(r'^version = "(.*)"$', MANIFEST, re.MULTILINE)[1]
ARCHIVE = f"fiord-{VERSION}-{platform.machine()}-linux.tar.gz"
SHELLS = [["dash"], ["busybox", "sh"], ["sh"]]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, format, *args):
        pass


@unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "binaries are released for x86_64 and aarch64")
class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="fiord-install-")
        cls.addClassCleanup(directory.cleanup)
        cls.served = os.path.join(directory.name, "served")
        cls.binary = os.environ["FIORD_BINARY"]
        os.mkdir(cls.served)
        tree = ARCHIVE[: -len(".tar.gz")]
        page = os.path.join(directory.name, "fiord.1")
        with open(page, "w") as file:
            file.write(".TH fiord 1\n")
        with tarfile.open(os.path.join(cls.served, ARCHIVE), "w:gz", compresslevel=1) as archive:
            archive.add(cls.binary, f"{tree}/fiord")
            archive.add(page, f"{tree}/man/fiord.1")
            archive.add(page, f"{tree}/completions/bash/fiord")
        handler = functools.partial(Quiet, directory=cls.served)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.url = f"http://127.0.0.1:{server.server_address[1]}"

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="fiord-prefix-")
        self.addCleanup(directory.cleanup)
        self.scratch = os.path.join(directory.name, "scratch")
        os.mkdir(self.scratch)
        self.prefix = os.path.join(directory.name, "a prefix")
        with open(os.path.join(self.served, ARCHIVE), "rb") as file:
            self.digest = hashlib.sha256(file.read()).hexdigest()
        self.sums(f"{self.digest}  {ARCHIVE}\n")

    def sums(self, text):
        with open(os.path.join(self.served, "SHA256SUMS"), "w") as file:
            file.write(text)

    def install(self, shell=("sh",), *arguments, **environment):
        environment = {**os.environ, "FIORD_BASE_URL": self.url, "TMPDIR": self.scratch, **environment}
        environment["no_proxy"] = "*"
        command = [*shell, os.path.join(HERE, "install.sh"), "--prefix", self.prefix, *arguments]
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(os.listdir(self.scratch), [], "temporary files are removed")
        return ended

    def refused(self, ended, why):
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertRegex(ended.stderr, why)
        self.assertFalse(os.path.exists(os.path.join(self.prefix, "bin")))

    def test_every_shell_installs(self):
        for shell in SHELLS:
            with self.subTest(shell=shell):
                if shutil.which(shell[0]) is None:
                    self.skipTest(f"{shell[0]} is not installed")
                # Each replaces what the one before it installed.
                ended = self.install(shell)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertIn(f"installed fiord {VERSION} as {self.prefix}/bin/fiord\nPATH does not have it", ended.stdout)
                files = [os.path.join(place, name) for place, _, names in os.walk(self.prefix) for name in names]
                names = ["bin/fiord", "share/bash-completion/completions/fiord", "share/man/man1/fiord.1"]
                self.assertEqual(sorted(os.path.relpath(file, self.prefix) for file in files), names)
                said = subprocess.run([f"{self.prefix}/bin/fiord", "version"], stdout=subprocess.PIPE, check=True)
                self.assertIn(f"fiord {VERSION}", said.stdout.decode())

    def test_a_wrong_checksum_is_refused(self):
        self.sums(f"{'0' * 64}  {ARCHIVE}\n")
        self.refused(self.install(), f"its SHA-256 is {self.digest}, not 0000.*nothing was installed")

    def test_an_archive_that_is_missing_is_refused(self):
        self.sums(f"{self.digest}  fiord-9.9.9-{platform.machine()}-linux.tar.gz\n")
        self.refused(self.install(), f"fiord-9.9.9-{platform.machine()}-linux.tar.gz: cannot be downloaded")
        self.sums(f"{self.digest}  fiord-0.1.0-riscv64-linux.tar.gz\n")
        self.refused(self.install(), f"has no archive for {platform.machine()}")

    def test_other_machines_are_told_what_to_do(self):
        fake = os.path.join(os.path.dirname(self.scratch), "fake")
        os.mkdir(fake)
        with open(os.path.join(fake, "uname"), "w") as file:
            file.write('#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo armv7l\n')
        os.chmod(os.path.join(fake, "uname"), 0o755)
        path = f"{fake}:{os.environ['PATH']}"
        self.refused(self.install(PATH=path), "no binary is released for armv7l; build it: cargo install")

    def test_a_prefix_that_cannot_be_written_is_said(self):
        self.prefix = "/proc/fiord"
        self.refused(self.install(), "cannot be made; choose another with --prefix")

    def test_unknown_arguments_are_refused(self):
        self.refused(self.install(("sh",), "--prefx"), "--prefx: unknown argument; usage: sh install.sh")

    def test_a_script_that_was_cut_off_does_nothing(self):
        with open(os.path.join(HERE, "install.sh")) as file:
            text = file.read()
        half = text[: text.rindex("main")]
        ended = subprocess.run(["sh"], input=half, text=True, stdout=subprocess.PIPE, check=True)
        self.assertEqual((ended.stdout, os.path.exists(self.prefix)), ("", False))


class Names(unittest.TestCase):
    """`cargo binstall` and install.sh look for the archive that `cargo x dist` makes."""

    def test_binstall_finds_the_archive(self):
        with open(os.path.join(ROOT, "crates/fiord/Cargo.toml")) as file:
            text = file.read()
        section = text.split("[package.metadata.binstall]\n")[1].split("\n[")[0]
        keys = dict(re.findall(r'^([a-z-]+) = "([^"]*)"$', section, re.MULTILINE))
        known = {"repo": "R", "version": VERSION, "target-arch": platform.machine(), "bin": "fiord"}
        filled = {key: re.sub(r"\{ ([a-z-]+) \}", lambda name: known[name[1]], value) for key, value in keys.items()}
        tree = ARCHIVE[: -len(".tar.gz")]
        self.assertEqual(filled["pkg-url"], f"R/releases/download/v{VERSION}/{ARCHIVE}")
        self.assertEqual((filled["bin-dir"], filled["pkg-fmt"]), (f"{tree}/fiord", "tgz"))

    def test_the_script_downloads_from_the_repository(self):
        repository = re.search(r'^repository = "(.*)"$', MANIFEST, re.MULTILINE)[1]
        with open(os.path.join(HERE, "install.sh")) as file:
            self.assertIn(f"\nRELEASES={repository}/releases\n", file.read())


if __name__ == "__main__":
    unittest.main()
