"""Tests of the module with the real program: python -m unittest discover tests

Invariant: they need the standard library alone, write below a temporary directory, and assert no time or rate.
"""

import contextlib
import importlib.util
import io
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Any, Dict, List

import fiord
from fiord._run import PROGRAM_OPTIONS

NULL: Dict[str, Any] = {"ioengine": "null", "size": "1m", "bs": "4k"}


class InDirectory(unittest.TestCase):
    """In a directory and with a history of its own."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="fiord-test-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        before = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, before)
        state = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = os.path.join(self.directory, "state")

        def restore() -> None:
            os.environ.pop("XDG_STATE_HOME") if state is None else os.environ.update(XDG_STATE_HOME=state)

        self.addCleanup(restore)

    def write(self, name: str, text: str) -> str:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
        return os.path.join(self.directory, name)

    def fiord(self, *arguments: str) -> str:
        ended = subprocess.run([fiord.binary(), *arguments], stdout=subprocess.PIPE, check=True)
        return ended.stdout.decode()


class Run(InDirectory):
    def test_a_mapping_a_text_and_a_path_are_the_same_jobs(self) -> None:
        text = "[global]\nioengine=null\nsize=1m\nbs=4k\n[a]\nrw=read\n[b]\nrw=write\n"
        path = self.write("jobs.fio", text)
        mapping = {"global": NULL, "a": {"rw": "read"}, "b": {"rw": "write"}}
        for jobs in [mapping, text, "[a]\nioengine=null\nsize=1m\nbs=4k\nrw=read\n[b]\nioengine=null\nrw=write\nsize=1m",
                     path, pathlib.Path("jobs.fio"), "jobs.fio"]:
            with self.subTest(jobs=jobs):
                report = fiord.run(jobs)  # type: ignore[arg-type]
                self.assertEqual([job.name for job in report.jobs], ["a", "b"])
                self.assertEqual((report.status, report.jobs["a"].read.ios, report.jobs[1].write.ios), (0, 256, 256))

    def test_figures_are_those_of_the_document(self) -> None:
        report = fiord.run({"a": {**NULL, "rw": "read"}})
        read, raw = report.jobs["a"].read, report.raw["jobs"][0]["read"]
        self.assertEqual((read.iops, read.bytes_per_s, read.bytes), (raw["iops"], raw["bw_bytes"], 1 << 20))
        self.assertEqual(read.clat.percentile(99), raw["clat_ns"]["percentile"]["99.000000"])
        self.assertEqual(list(read.clat.percentiles), sorted(read.clat.percentiles))
        self.assertEqual(read.latency, read.clat)
        with self.assertRaisesRegex(KeyError, "p42 was not measured; measured: 1, 5"):
            read.clat.percentile(42)

    def test_findings_are_values(self) -> None:
        report = fiord.run({"a": {**NULL, "rw": "read"}})
        few = [finding for finding in report.findings if finding.code == "few-samples"]
        self.assertEqual((few[0].severity, few[0].figures["ios"]), ("note", 256))
        self.assertEqual(fiord.run({"a": {**NULL, "rw": "read"}}, trust="off").findings, ())

    def test_no_value_is_read_as_anything_else(self) -> None:
        value = "x # ; $HOME `id` \n[b]\nrw=write --output=stolen"
        report = fiord.run({"--name=c": {**NULL, "rw": "read", "description": value}})
        self.assertEqual([job.name for job in report.jobs], ["--name=c"])
        self.assertEqual(report.jobs[0].options["description"], value)
        self.assertEqual(os.listdir("."), ["state"])

    def test_options_of_the_program_are_refused(self) -> None:
        for option in ["output", "outp", "append_terse", "name", "na", "server", "trigger", "-x", "a=b", ""]:
            with self.subTest(option=option), self.assertRaises(ValueError):
                fiord.run({"a": {option: "x"}})
        with self.assertRaises(TypeError):
            fiord.run({"a": {"size": None}})  # type: ignore[dict-item]
        with self.assertRaisesRegex(ValueError, "no job"):
            fiord.run({"global": NULL})

    def test_all_options_of_the_program_are_known(self) -> None:
        listed = set(re.findall(r"^ {2,6}--([a-z-]+)", self.fiord("--help"), re.MULTILINE))
        self.assertLess({"output", "server"}, listed)
        self.assertEqual(listed - PROGRAM_OPTIONS, set())

    def test_a_path_is_no_option(self) -> None:
        self.write("--version", "[a]\nioengine=null\nsize=1m\n")
        self.assertEqual(fiord.run("--version").jobs[0].name, "a")

    def test_what_fiord_refuses_is_an_exception_with_its_words(self) -> None:
        with self.assertRaises(fiord.FiordError) as caught:
            fiord.run({"a": {"ioengine": "nul"}})
        self.assertEqual(caught.exception.status, 1)
        self.assertIn('did you mean "null"', str(caught.exception))
        with self.assertRaisesRegex(fiord.FiordError, "missing.fio"):
            fiord.run("missing.fio")

    def test_a_failed_job_has_its_report(self) -> None:
        # Writes to it fail with ENOSPC.
        jobs = {"a": {"rw": "write", "ioengine": "sync", "filename": "/dev/full", "size": "64k", "bs": "4k"}}
        with self.assertRaises(fiord.JobFailed) as caught:
            fiord.run(jobs)
        self.assertEqual(caught.exception.report.jobs["a"].error, 28)

    def test_conditions_have_a_report_and_a_status(self) -> None:
        jobs = {"a": {**NULL, "rw": "read"}}
        self.assertEqual(fiord.run(jobs, fail_if="read.iops > 0").status, 8)
        self.assertEqual(fiord.run(jobs, fail_if=["read.iops < 0"]).status, 0)

    def test_a_timeout_keeps_what_was_measured(self) -> None:
        report = fiord.run({"a": {**NULL, "rw": "read", "time_based": True, "runtime": 600, "rate_iops": 1000}}, timeout=2)
        self.assertEqual((report.status, report.is_interrupted), (128 + signal.SIGTERM, True))
        self.assertGreater(report.jobs["a"].read.ios or 0, 0)

    def test_ctrl_c_keeps_what_was_measured(self) -> None:
        def interrupt() -> None:
            # Its file is there once it has begun.
            while not os.path.exists("data"):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        # A program that was started in the background ignores Ctrl-C.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        thread = threading.Thread(target=interrupt)
        thread.start()
        options: Dict[str, Any] = {"ioengine": "sync", "filename": "data", "rw": "write", "size": "1m", "runtime": 600}
        options.update(time_based=True, rate_iops=1000)
        jobs = {"a": options}
        with self.assertRaises(fiord.Interrupted) as caught:
            fiord.run(jobs)
        thread.join()
        self.assertIsNotNone(caught.exception.report)

    def test_a_binary_that_is_missing_is_named(self) -> None:
        with self.assertRaisesRegex(fiord.BinaryMissing, "/no/fiord"):
            fiord.run({"a": NULL}, binary="/no/fiord")


class Read(InDirectory):
    def job(self, *options: str) -> str:
        return self.fiord("--name=a", "--ioengine=null", "--rw=randrw", "--size=4m", *options)

    def test_json_of_a_run_is_read_whole(self) -> None:
        text = self.job("--output-format=json")
        report = fiord.read(self.write("a.json", text))
        self.assertEqual((report.raw, report.status), (json.loads(text), None))

    def test_other_formats_have_their_figures(self) -> None:
        # Each I/O takes a microsecond at least: a terse report has whole ones, and 0 for a percentile that it lacks.
        long = ["--ioengine=sync", "--filename=data", "--bs=1m"]
        for name in ["normal", "terse"]:
            with self.subTest(format=name):
                report = fiord.read(self.write("a,b@c", self.job(f"--output-format={name}", *long)))
                read = report.jobs[0].read
                self.assertGreater(read.iops, 0)
                self.assertGreater(read.bytes_per_s, 0)
                self.assertGreaterEqual(read.clat.percentile(99), 1000)
                self.assertIsNone(read.ios)
                self.assertTrue(math.isnan(read.clat.max_ns))
                self.assertEqual({row["direction"] for row in report.rows()}, {"read", "write"})
                self.assertEqual(fiord.compare(report, report).status, 0)

    def test_what_is_no_report_is_said(self) -> None:
        with self.assertRaises(fiord.NotAReport):
            fiord.read(self.write("note", "hello\n"))
        with self.assertRaises(fiord.NotAReport):
            fiord.read(self.write("note.json", '{"jobs": 3}'))
        with self.assertRaises(FileNotFoundError):
            fiord.read("missing")

    def test_several_jobs_of_one_name_are_taken_by_position(self) -> None:
        report = fiord.run({"a": {**NULL, "rw": "read", "numjobs": 2}})
        self.assertEqual(len(report.jobs), 2)
        with self.assertRaisesRegex(KeyError, "2 jobs are named 'a'"):
            report.jobs["a"]
        with self.assertRaisesRegex(KeyError, "no job is named 'b'"):
            report.jobs["b"]


class Compare(InDirectory):
    def setUp(self) -> None:
        super().setUp()
        self.report = fiord.run({"a": {**NULL, "rw": "read"}}, tag="first")

    def test_reports_files_repetitions_and_the_history_compare(self) -> None:
        path = self.write("last,5@x", json.dumps(self.report.raw))
        others: List[Any] = [self.report, path, pathlib.Path(path), [path, self.report], fiord.Recorded("first")]
        for other in others:
            with self.subTest(other=other):
                found = fiord.compare(self.report, other)
                self.assertEqual((found.status, len(found.sentences)), (0, 1))
                self.assertEqual(found.changes[0].figure, "read.iops")
                self.assertEqual(found.changes[0].change_percent, 0)
                self.assertNotIn("result-", json.dumps(found.raw))

    def test_conditions_have_decisions(self) -> None:
        found = fiord.compare(self.report, self.report, fail_if="read.iops > 0")
        self.assertEqual((found.status, found.conditions[0].decision), (8, "holds"))

    def test_what_fiord_refuses_is_an_exception(self) -> None:
        with self.assertRaisesRegex(fiord.FiordError, "nothing"):
            fiord.compare(self.report, fiord.Recorded("nothing"))
        with self.assertRaises(FileNotFoundError):
            fiord.compare(self.report, "missing")
        for name in ["", "a,b", "/etc/passwd"]:
            with self.assertRaises(ValueError):
                fiord.compare(self.report, fiord.Recorded(name))


class Pandas(InDirectory):
    def test_tables_need_pandas_and_say_so(self) -> None:
        report = fiord.run({"a": {**NULL, "rw": "read"}})
        self.assertEqual((report.rows()[0]["job"], report.rows()[0]["direction"]), ("a", "read"))
        try:
            import pandas
        except ImportError:
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                report.to_pandas()
        else:
            self.assertIsInstance(report.to_pandas(), pandas.DataFrame)
            self.assertEqual(report.to_pandas()["p99_ns"][0], report.jobs[0].read.clat.percentile(99))


class Guide(InDirectory):
    def test_the_examples_of_the_guide_run(self) -> None:
        guide = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
        # What a disk does is not of interest here.
        text = guide.read_text("utf-8").replace('"filename": "data"', '"ioengine": "null"')
        text = text.replace("filename=data", "ioengine=null")
        examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(examples), 4)
        names: Dict[str, Any] = {}
        has_pandas = importlib.util.find_spec("pandas") is not None
        for at, example in enumerate(examples):
            if example.startswith("# needs pandas") and not has_pandas:
                continue
            with self.subTest(example=at), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(example, f"{guide}, example {at}", "exec"), names)
        self.assertIn(names["comparison"].status, (0, 6, 8))


if __name__ == "__main__":
    unittest.main()
