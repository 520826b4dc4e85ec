"""What `fiord watch` costs: its own processor time, and that of the I/O that it looks at.

    sudo python3 bench/watch_cost.py FIORD [SECONDS [PAIRS]] > bench/runs/DATE-HOST-watch.json

Pairs of the same job of fio with and without watching, in turns, on a loop device over tmpfs, whose requests no disk delays.
The processor time of watching is that of the whole process, from its start to its end, by the time that the job ran. That of an
I/O is the job's and that of the kernel's workers. What of it the kernel's tracepoints take is sampled by perf, where that is.
"""

import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

JOB = "--name=a --filename={} --direct=1 --ioengine=libaio --rw=randread --bs=4k --size=256m --norandommap --time_based"
WORKLOADS = {
    "10000_a_second": "--iodepth=4 --rate_iops=10000",
    "10000_a_second_on_a_terminal": "--iodepth=4 --rate_iops=10000",
    "one_at_a_time": "--iodepth=1",
    "as_fast_as_it_goes": "--iodepth=32",
}


def spent(before):
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def workers_ns():
    """The processor time of each of the kernel's workers, one of which does the work of a loop device."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().startswith("kworker"):
                found[process.name] = int((process / "schedstat").read_text().split()[0])
        except OSError:
            pass
    return found


def job(device, options, seconds):
    before, workers_before = resource.getrusage(resource.RUSAGE_CHILDREN), workers_ns()
    words = f"{JOB.format(device)} {options} --runtime={seconds} --output-format=json".split()
    done = subprocess.run(["fio", *words], check=True, capture_output=True)
    cpu_s = spent(before)
    of_workers_s = sum(max(0, ns - workers_before.get(worker, 0)) for worker, ns in workers_ns().items()) / 1e9
    read = json.loads(done.stdout)["jobs"][0]["read"]
    percentiles = read["clat_ns"]["percentile"]
    return {
        "iops": round(read["iops"]),
        "cpu_s": round(cpu_s, 4),
        "cpu_us_per_io": round((cpu_s + of_workers_s) * 1e6 / read["total_ios"], 3),
        "p50_ns": percentiles["50.000000"],
        "p99_ns": percentiles["99.000000"],
        "seconds": read["runtime"] / 1000,
        "load": round(os.getloadavg()[0], 1),
    }


class Watching:
    """fiord while it records."""

    def __init__(self, fiord, device, on_terminal):
        self.began = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [fiord, "watch", device, "--for", "2m"]
        if on_terminal:
            self.terminal, inner = pty.openpty()
            os.environ["TERM"] = "xterm"
            self.process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner)
            os.close(inner)
            threading.Thread(target=self.drain, daemon=True).start()
        else:
            self.terminal = None
            self.process = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE)
        while not self.records():
            time.sleep(0.01)

    def drain(self):
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass

    def records(self):
        try:
            links = Path(f"/proc/{self.process.pid}/fd").iterdir()
            return any(os.readlink(link).endswith("trace_pipe_raw") for link in links)
        except FileNotFoundError:
            # One was closed meanwhile.
            return False

    def stop(self, seconds, cpu_s_of_job):
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate()
        cpu_s = spent(self.began) - cpu_s_of_job
        found = {"cpu_s": round(cpu_s, 4), "cpu_percent": round(100 * cpu_s / seconds, 2)}
        if self.terminal is None:
            document = json.loads(out)
            reads = next(row for row in document["devices"] if row["operation"] == "read")
            found |= {"requests": reads["requests"], "lost": document["lost_events"]}
            found["cpu_ns_per_request"] = round(1e9 * cpu_s / max(1, reads["requests"]))
        return found


def run(fiord, device, name, seconds, watches):
    options = WORKLOADS[name]
    if not watches:
        return job(device, options, seconds)
    watching = Watching(fiord, device, name.endswith("terminal"))
    done = job(device, options, seconds)
    return done | {"watch": watching.stop(done["seconds"], done["cpu_s"])}


def tracing_ns(fiord, device, seconds):
    """The processor time that the tracepoints of a request take, by samples of all processors."""
    rate_hz, place = 5000, tempfile.mkdtemp()
    watching = Watching(fiord, device, False)
    words = "perf record -q -a -g -e cpu-clock".split() + ["-F", str(rate_hz), "-o", f"{place}/samples", "fio"]
    words += f"{JOB.format(device)} {WORKLOADS['as_fast_as_it_goes']} --runtime={seconds} --output-format=json".split()
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    watching.stop(seconds, 0)
    script = ["perf", "script", "-i", f"{place}/samples", "-F", "comm,ip,sym"]
    stacks = subprocess.run(script, check=True, capture_output=True, text=True).stdout.split("\n\n")
    traced = sum("trace_event_raw_event_block" in stack or "__traceiter_block" in stack for stack in stacks)
    shutil.rmtree(place)
    return round(traced / rate_hz * 1e9 / json.loads(done.stdout)["jobs"][0]["read"]["total_ios"])


def spread(values):
    ordered = sorted(values)
    return {"median": ordered[len(ordered) // 2], "smallest": ordered[0], "largest": ordered[-1]}


def measure(fiord, device, name, seconds, count):
    pairs = []
    for number in range(count):
        order = [False, True] if number % 2 == 0 else [True, False]
        done = {watches: run(fiord, device, name, seconds, watches) for watches in order}
        without, watched = done[False], done[True]
        compared = ("iops", "cpu_us_per_io", "p50_ns", "p99_ns")
        ratios = {f"ratio_{key}": round(watched[key] / without[key], 3) for key in compared}
        pairs.append({"without": without, "with": watched, **ratios})
        print(name, json.dumps(pairs[-1]), file=sys.stderr)
    keys = [key for key in pairs[0] if key.startswith("ratio")]
    return {
        "options": f"{JOB.format('LOOP')} {WORKLOADS[name]}",
        "pairs": pairs,
        "cpu_percent": spread([pair["with"]["watch"]["cpu_percent"] for pair in pairs]),
        **{key: spread([pair[key] for pair in pairs]) for key in keys},
    }


def machine(fiord):
    def line(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]

    cpu = next(text for text in Path("/proc/cpuinfo").read_text().splitlines() if text.startswith("model name"))
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "host": os.uname().nodename,
        "cpu": cpu.split(": ")[1],
        "cpu_count": os.cpu_count(),
        "kernel": line("uname", "-srm"),
        "fio": line("fio", "--version"),
        "fiord": line(fiord, "version"),
        "fiord_bytes": Path(fiord).stat().st_size,
    }


def main():
    # So that what was made is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    fiord = sys.argv[1]
    seconds, count = (int(word) for word in (sys.argv[2:] + ["8", "5"][len(sys.argv) - 2 :])[:2])
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "none", place], check=True)
        device = None
        try:
            image = Path(place, "image")
            image.write_bytes(b"\1" * (256 << 20))
            made = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
            device = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
            found = {name: measure(fiord, device, name, seconds, count) for name in WORKLOADS}
            sampled = [tracing_ns(fiord, device, seconds) for _ in range(count)] if shutil.which("perf") else []
        finally:
            if device:
                subprocess.run(["losetup", "--detach", device], check=True)
            subprocess.run(["umount", place], check=True)
    command = " ".join([*sys.argv[:1], "FIORD", *sys.argv[2:]])
    document = {"machine": machine(fiord), "command": command, "workloads": found, "tracing_ns_per_request": sampled}
    print(json.dumps(document, indent=1))


main()
