"""Runs a job on the hosts of tests/cluster/lib.bash, disturbs it, and collects what is to be seen of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from draw import OWN, command, disk

LIMIT = 120  # seconds for a job, on the busiest machine
QUIET = 60  # likewise, until all processes have ended
TAG = os.environ["CLUSTER_TAG"]
SHARED = Path(os.environ["CLUSTER_SHARED"])
BUILD = Path(os.environ["DTRUN_BUILD"])
INITS = [int(pid) for pid in os.environ["CLUSTER_INITS"].split()]  # the first process of each host


@dataclass
class Outcome:
    code: int = None  # None: dtrun did not end
    seconds: float = 0
    landed: list = field(default_factory=list)  # the faults that happened
    out: bytes = b""
    err: bytes = b""
    files: dict = field(default_factory=dict)  # of --output-dir: name: bytes
    notes: dict = field(default_factory=dict)  # of the ranks: name: text
    report: object = None
    ranks_left: list = field(default_factory=list)  # when dtrun had just ended
    left: list = field(default_factory=list)  # later: processes and files


# ---- processes and files of the hosts ----


def read(path):
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


class Process:
    def __init__(self, pid):
        self.pid = pid

    @cached_property
    def environ(self):
        return read(f"/proc/{self.pid}/environ").split(b"\0")

    @cached_property
    def name(self):
        return read(f"/proc/{self.pid}/comm").decode(errors="replace").strip()

    @cached_property
    def stat(self):
        return read(f"/proc/{self.pid}/stat").rpartition(b")")[2].decode().split() or ["Z", "0"]

    @property
    def state(self):
        return self.stat[0]

    @property
    def parent(self):
        return int(self.stat[1])

    @cached_property
    def namespace(self):
        try:
            return os.readlink(f"/proc/{self.pid}/ns/pid")
        except OSError:
            return ""

    def text(self):
        return read(f"/proc/{self.pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")[:100]


def processes(wanted):
    found = [Process(int(p)) for p in os.listdir("/proc") if p.isdigit()]
    return {p.pid: p for p in found if wanted(p) and p.state != "Z"}


NAMESPACES = [os.readlink(f"/proc/{pid}/ns/pid") for pid in INITS]


def files_of_hosts():
    """Files that a job might leave on a host, except the agents that dtrun keeps there. Where /tmp is the machine's,
    others use it, too."""
    found = set()
    for i, init in enumerate(INITS):
        root = Path(f"/proc/{init}/root")
        for top in (root / "dev/shm", root / "run", *root.glob("tmp/dtrun*")):
            for where, _, names in os.walk(top):
                found |= {f"host{i + 1}:{where.partition('root/')[2]}/{name}" for name in names}
    return {f for f in found if "/.cache/dtrun/dtrun-" not in f}


# ---- a run ----


class Run:
    def __init__(self, job, place):
        self.job, self.place = job, Path(place)
        self.token = f"RANDOMJOB={os.getpid()}.{time.monotonic_ns()}"
        self.outcome = Outcome()
        self.pipe = None
        self.next_read = 0

    def start(self):
        job = self.job
        for name in ("notes", "tmp"):
            (self.place / name).mkdir()
        (self.place / "hosts").write_text("".join(f"{h} slots={n}\n" for h, n in zip(job.hosts, job.slots)))
        (self.place / "input").write_bytes(b"x" * max(0, job.input))
        where = ["ip", "netns", "exec", f"{TAG}-l", "env", "-u", "SSH_AUTH_SOCK", f"HOME={os.environ['CLUSTER_HOME']}"]
        where += [f"TMPDIR={self.place}/tmp", f"CLUSTER_TOKEN={TAG}", self.token, f"PATH={BUILD}/cmd:{os.environ['PATH']}"]
        given, self.held = open(self.place / "input", "rb"), None
        if job.input == -2:
            end, self.held = os.pipe()
            given = os.fdopen(end, "rb")
        out = open(self.place / "out", "wb")
        self.process = subprocess.Popen(
            where + command(job, self.place, BUILD / "tests/rank"),
            stdin=given,
            stdout=subprocess.PIPE if job.reader != "file" else out,
            stderr=open(self.place / "err", "wb"),
            cwd=self.place,
            process_group=0,  # as a shell with job control does; it may be stopped
        )
        given.close()
        if job.reader != "file":
            self.pipe = self.process.stdout
            os.set_blocking(self.pipe.fileno(), False)
            self.copy = out
        self.started = time.monotonic()

    def read_pipe(self, at_once=True):
        now = time.monotonic()
        if not self.pipe or (not at_once and now < self.next_read):
            return
        self.next_read = now + 0.02
        while data := self.pipe.read(1 << 20):
            self.copy.write(data)

    def is_over(self):
        return self.process.poll() is not None

    def is_mine(self, process):
        return self.token.encode() in process.environ

    def processes_of_job(self):
        return processes(self.is_mine)

    # ---- faults: each is a generator of what to wait for, seconds or a condition ----

    def disturb(self, fault):
        if fault.kind in OWN:
            return
        if fault.after:
            yield lambda: self.job.faults[0] in self.outcome.landed or self.has_struck(self.job.faults[0])
        elif not fault.start:
            told = self.place / f"notes/told.{fault.rank}.{fault.step}"
            yield told.exists
        yield fault.delay
        yield from getattr(self, "do_" + fault.kind.replace(" ", "_"))(fault)

    def has_struck(self, fault):
        return fault.kind in OWN and (self.place / f"notes/struck.{fault.rank}.{fault.step}").exists()

    def kill(self, fault, pids, number):
        """Returns whether a process got the signal, which is then noted."""
        if self.is_over() or not pids:
            return False
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return False
        self.outcome.landed.append(fault)
        return True

    def kill_dtrun(self, fault, number):
        return self.kill(fault, [self.process.pid], number)

    def do_rank(self, fault):
        mine = f"DTRUN_RANK={fault.rank}".encode()
        ranks = {pid: p for pid, p in self.processes_of_job().items() if mine in p.environ}
        first = [pid for pid, p in ranks.items() if p.parent not in ranks]
        first = [pid for pid in first if ranks[pid].name in ("randomjob", "sh") and not self.is_orphan(ranks[pid])]
        self.kill(fault, first[:1], fault.value)
        yield from ()

    def is_orphan(self, process):
        """Whether it is not a rank but a child in a session of its own: their parent may have gone."""
        return not Process(process.parent).name.startswith("dtrun-agent")

    def namespace(self, fault):
        return NAMESPACES[int(self.job.hosts[fault.host][4:]) - 1]

    def agents(self, fault):
        """Keeper and worker of the fault's host."""
        if self.job.where == "ssh":
            found = processes(lambda p: p.namespace == self.namespace(fault) and p.name.startswith("dtrun-agent"))
        else:
            found = processes(lambda p: p.name.startswith("dtrun-agent") and self.is_mine(p))
        keepers = sorted(pid for pid, p in found.items() if p.parent not in found)
        keeper = keepers[fault.host % len(keepers)] if keepers else None
        return [keeper], [pid for pid, p in found.items() if p.parent == keeper]

    def do_keeper(self, fault):
        keeper, worker = self.agents(fault)
        self.kill(fault, keeper if worker else [], signal.SIGKILL)
        yield from ()

    def do_worker(self, fault):
        self.kill(fault, self.agents(fault)[1], signal.SIGKILL)
        yield from ()

    def do_both(self, fault):
        keeper, worker = self.agents(fault)
        self.kill(fault, keeper + worker if worker else [], signal.SIGKILL)
        yield from ()

    def do_frozen_worker(self, fault):
        self.kill(fault, self.agents(fault)[1], signal.SIGSTOP)
        yield from ()

    def signal_agent(self, fault, number):
        keeper, worker = self.agents(fault)
        self.kill(fault, [keeper, worker][fault.rank % 2] if worker else [], number)
        yield from ()

    def do_agent_INT(self, fault):
        yield from self.signal_agent(fault, signal.SIGINT)

    def do_agent_TERM(self, fault):
        yield from self.signal_agent(fault, signal.SIGTERM)

    def do_agent_HUP(self, fault):
        yield from self.signal_agent(fault, signal.SIGHUP)

    def do_session(self, fault):
        host = self.namespace(fault)
        found = list(processes(lambda p: p.namespace == host and "sshd: root@" in p.text()))
        self.kill(fault, found[:1], signal.SIGKILL)
        yield from ()

    def do_INT(self, fault):
        self.kill_dtrun(fault, signal.SIGINT)
        yield from ()

    def do_INT2(self, fault):
        self.kill_dtrun(fault, signal.SIGINT)
        yield fault.seconds / 5
        if not self.is_over():
            self.process.send_signal(signal.SIGINT)

    def do_TERM(self, fault):
        self.kill_dtrun(fault, signal.SIGTERM)
        yield from ()

    def do_HUP(self, fault):
        self.kill_dtrun(fault, signal.SIGHUP)
        yield from ()

    def do_KILL(self, fault):
        self.kill_dtrun(fault, signal.SIGKILL)
        yield from ()

    def do_TSTP(self, fault):
        if self.kill_dtrun(fault, signal.SIGTSTP):
            yield lambda: Process(self.process.pid).state == "T"
            yield fault.seconds
            self.process.send_signal(signal.SIGCONT)

    def do_FREEZE(self, fault):
        if self.kill_dtrun(fault, signal.SIGSTOP):
            yield fault.seconds
            self.process.send_signal(signal.SIGCONT)

    def do_cut(self, fault):
        number = self.job.hosts[fault.host][4:]
        self.outcome.landed.append(fault)
        subprocess.run(["ip", "-n", f"{TAG}-l", "link", "set", f"h{number}", "down"], check=True)
        try:
            yield fault.seconds
        finally:
            subprocess.run(["ip", "-n", f"{TAG}-l", "link", "set", f"h{number}", "up"], check=True)
            subprocess.run(["ip", "-n", f"{TAG}-h{number}", "neighbour", "flush", "dev", "eth0"], check=True)
            subprocess.run(["ip", "-n", f"{TAG}-l", "neighbour", "flush", "dev", "br0"], check=True)

    do_blip = do_cut

    def do_reader_leaves(self, fault):
        self.outcome.landed.append(fault)
        self.read_pipe()
        self.pipe.close()
        self.pipe = None
        yield from ()

    # ---- the whole ----

    def watch(self):
        """Lets faults happen until dtrun has ended, or should have."""
        waiting = []  # (fault's generator, what it waits for)

        def go_on(plan):
            due = next(plan, None)
            if due is not None:
                end = time.monotonic() + due if not callable(due) else 0
                waiting.append((plan, due if callable(due) else lambda: time.monotonic() >= end))

        plans = [self.disturb(fault) for fault in self.job.faults]
        for plan in plans:
            go_on(plan)
        while not self.is_over() and time.monotonic() < self.started + LIMIT:
            for item in list(waiting):
                if item[1]():
                    waiting.remove(item)
                    go_on(item[0])
            self.read_pipe(at_once=self.job.reader != "slow")
            time.sleep(0.004)
        return plans

    def await_quiet(self):
        def is_left(p):
            return (p.namespace in NAMESPACES and p.pid not in INITS) or self.is_mine(p)

        abandoned = "family" in self.job.words and any(f.kind == "both" for f in self.outcome.landed)
        end = time.monotonic() + (2 if abandoned else QUIET)
        while (left := processes(is_left)) and time.monotonic() < end:
            time.sleep(0.01)
        for pid, p in left.items():
            self.outcome.left.append(f"process {pid} {p.name} ({p.state}): {p.text()}")
            os.kill(pid, signal.SIGKILL)

    def collect(self):
        o, job = self.outcome, self.job
        o.out, o.err = read(self.place / "out"), read(self.place / "err")
        output = Path(disk(job, self.place, "files")) / "output"
        if output.is_dir():
            o.files = {f.name: f.read_bytes() for f in output.iterdir()}
        o.notes = {f.name: f.read_text() for f in (self.place / "notes").glob("[a-z]*")}
        o.landed += [f for f in job.faults if self.has_struck(f)]
        try:
            o.report = json.loads(read(self.place / "report.json"))
        except ValueError:
            o.report = None

    def run(self):
        before = files_of_hosts()
        self.start()
        plans = self.watch()
        o = self.outcome
        o.seconds = time.monotonic() - self.started
        o.code = self.process.poll()
        o.ranks_left = [f"{pid} {p.name}" for pid, p in self.processes_of_job().items() if p.name == "randomjob"]
        if o.code is None:
            self.show_hang()
        for plan in plans:
            plan.close()
        self.process.kill()
        self.process.wait()
        self.read_pipe()
        if self.job.reader != "file":
            self.copy.close()
        if self.held is not None:
            os.close(self.held)
        self.await_quiet()
        o.left += sorted(files_of_hosts() - before) + [f"tmp/{f}" for f in os.listdir(self.place / "tmp")]
        self.collect()
        return o

    def show_hang(self):
        for pid, p in self.processes_of_job().items():
            self.outcome.left.append(f"at the limit: {pid} {p.name} ({p.state}) {read(f'/proc/{pid}/wchan').decode()}")


def run(job, place):
    if [Process(pid).namespace for pid in INITS] != NAMESPACES:
        sys.exit("the hosts have gone")
    shutil.rmtree(place, ignore_errors=True)
    Path(place).mkdir(parents=True)
    for path in (SHARED / "small").iterdir():
        shutil.rmtree(path, ignore_errors=True)
    return Run(job, place).run()
