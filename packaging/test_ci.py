"""Tests of what pipelines run: FIORD_BINARY=PATH python3 packaging/test_ci.py

Invariant: every job has the null engine, and all that is written lies below a temporary directory.
"""

import os
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "ci", "run.sh")
JOB = ["--name=job", "--ioengine=null", "--rw=read", "--size=64m", "--repeat=3"]


class Pipeline(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="fiord-ci-")
        self.addCleanup(directory.cleanup)
        self.place = directory.name

    def run_script(self, arguments, **variables):
        """The exit status, what was said as an error, and the outputs of a step."""
        steps = os.path.join(self.place, "outputs")
        summary = os.path.join(self.place, "summary")
        for file in steps, summary:
            open(file, "w").close()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.place,
            "FIORD": os.environ["FIORD_BINARY"],
            "FIORD_ARGUMENTS": "\n".join(arguments),
            "GITHUB_OUTPUT": steps,
            "GITHUB_STEP_SUMMARY": summary,
            **variables,
        }
        ran = subprocess.run(
            ["sh", SCRIPT], cwd=self.place, env=environment, capture_output=True, text=True, check=False
        )
        with open(steps) as outputs, open(summary) as said:
            named = dict(line.rstrip("\n").split("=", 1) for line in outputs)
            self.summary = said.read()
        self.assertEqual(named.get("status", "2"), str(ran.returncode), ran.stderr)
        return ran.returncode, ran.stderr, named

    def kept(self):
        return sorted(os.listdir(os.path.join(self.place, "fiord-output")))

    def test_a_first_run_is_the_baseline_of_the_second(self):
        baseline = {"FIORD_BASELINE": os.path.join(self.place, "baseline.json")}
        status, said, outputs = self.run_script(JOB, **baseline)
        self.assertEqual((status, outputs["verdict"]), (0, "pass"), said)
        self.assertTrue(os.path.exists(baseline["FIORD_BASELINE"]))
        self.assertEqual(self.kept(), ["page.html", "result.json", "summary.md"])
        status, said, _ = self.run_script(JOB, FIORD_FAIL_IF_CHANGED="read.iops < -100%", **baseline)
        self.assertIn(status, (0, 6), said)
        self.assertIn("| FIGURE |", self.summary)
        suites = xml.etree.ElementTree.parse(os.path.join(self.place, "fiord-output", "compare.xml"))
        names = [case.get("name") for case in suites.iter("testcase")]
        self.assertEqual(names, ["read.iops < -100%"])

    def test_a_condition_that_holds_fails_the_build_and_makes_no_baseline(self):
        baseline = os.path.join(self.place, "baseline.json")
        conditions = "read.p99 > 60s\nread.iops > 1"
        status, said, outputs = self.run_script(JOB, FIORD_FAIL_IF=conditions, FIORD_BASELINE=baseline)
        self.assertEqual((status, outputs["verdict"]), (8, "fail"), said)
        self.assertIn("read.iops > 1", said)
        self.assertTrue(self.summary.startswith("## fiord: fail\n"), self.summary)
        self.assertFalse(os.path.exists(baseline))

    def test_arguments_are_no_shell_text(self):
        name = "--name=it's `touch a` $(touch b); touch c & \"d"
        status, said, _ = self.run_script([name, *JOB[1:]])
        self.assertEqual(status, 0, said)
        made = set(os.listdir(self.place)) - {".local"}
        self.assertEqual(made, {"fiord-output", "outputs", "summary"})
        self.assertIn("touch b", self.summary)

    def test_what_cannot_run_is_an_error_that_says_why(self):
        status, said, outputs = self.run_script(["missing.fio"])
        self.assertEqual((status, outputs["verdict"]), (1, "error"))
        self.assertIn("missing.fio", said)
        self.assertEqual(self.run_script([])[0], 2)

    def test_a_study_is_asked_for_its_document(self):
        program = os.path.join(self.place, "program")
        with open(program, "w") as file:
            file.write('#!/bin/sh\nprintf "%s|" "$@" >>"$HOME/calls"\n')
        os.chmod(program, 0o755)
        self.run_script(["quick", "/mnt/a b"], FIORD=program, FIORD_FAIL_IF="read.p99 > 1s")
        with open(os.path.join(self.place, "calls")) as calls:
            first = calls.read()
        self.assertEqual(first, "quick|/mnt/a b|--undecided=tell|--json|--fail-if|read.p99 > 1s|")

    def test_no_input_of_the_action_is_put_into_shell_text(self):
        with open(os.path.join(HERE, "..", "action.yml")) as file:
            action = file.read()
        scripts = re.findall(r"^( +)run: (.*(?:\n(?:\1 .*)?)*)", action, re.MULTILINE)
        self.assertEqual(len(scripts), 2)
        for _, script in scripts:
            self.assertNotIn("${{", script)
        for variable in re.findall(r"^ +(FIORD\w*): ", action, re.MULTILINE):
            with open(SCRIPT) as file:
                self.assertIn(variable, file.read())


if __name__ == "__main__":
    unittest.main()
