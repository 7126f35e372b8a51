"""What a seed chooses: a job and what disturbs it."""

import random
from dataclasses import dataclass, field

HOSTS = 4
UNHURRIED = 600  # seconds: a limit for which no job must wait


@dataclass
class Fault:
    kind: str
    rank: int = 0  # the rank that it concerns, or at whose step it happens
    step: int = 0  # 0: before the program does anything
    delay: float = 0  # seconds after that step
    start: bool = False  # the delay counts from the start of dtrun, not from a step
    after: bool = False  # it counts from the first fault
    host: int = 0  # index in the job's hosts
    value: int = 0  # an exit code or a signal
    seconds: float = 0  # how long it lasts

    def __str__(self):
        when = f"step {self.step} of rank {self.rank}"
        when = "the start" if self.start else "the first fault" if self.after else when
        what = {"exit": f" code {self.value}", "signal": f" {self.value}", "rank": f" {self.value}"}.get(self.kind, "")
        return f"{self.kind}{what} {self.delay * 1000:.0f} ms after {when}, host {self.host}, {self.seconds:.1f} s"


@dataclass
class Job:
    seed: int
    where: str  # "ssh", "here" (this machine) or "played" (it plays several hosts)
    hosts: list = field(default_factory=list)
    slots: list = field(default_factory=list)
    np: int = 1
    steps: int = 20
    every: int = 0  # steps between checkpoints, 0: none, -1: the program does not use the library
    words: list = field(default_factory=list)
    wrapped: bool = False
    push: bool = False
    options: list = field(default_factory=list)
    hostfile: bool = False
    restarts: int = -1  # --max-restarts, -1: not given
    on_loss: str = "move"
    heartbeat: float = UNHURRIED
    grace: float = UNHURRIED
    hang: float = UNHURRIED  # --collective-timeout
    timeout: float = 0
    output: str = "out"  # "out", "files" or "tee"
    full: str = ""  # "files" or "checkpoints": on a disk that fills up
    labels: bool = False
    reader: str = "file"  # or "pipe", or "slow", a pipe that is read now and then
    input: int = -1  # bytes of standard input, -1: none; -2: a pipe that nobody writes to
    faults: list = field(default_factory=list)

    @property
    def linked(self):
        return self.every >= 0


def draw_shape(rng, job):
    job.where = rng.choice(["ssh"] * 6 + ["here", "played", "played"])
    count = {"ssh": rng.choice([1, 2, 2, 2, 3, 4]), "here": 1, "played": rng.choice([2, 2, 3])}[job.where]
    names = {"ssh": [f"host{i + 1}" for i in range(HOSTS)], "here": ["localhost"], "played": ["a", "b", "c"]}[job.where]
    job.hosts = rng.sample(names, count)
    job.slots = [rng.choice([1, 1, 2, 2, 3]) for _ in job.hosts]
    most = sum(job.slots)
    job.np = rng.choice([most, most, most, max(1, most - 1), min(most + 2, 8)])
    job.hostfile = job.where != "here" and rng.random() < 0.2
    if job.where == "ssh" and rng.random() < 0.25:
        job.options += ["--transport", "ssh"]
    if job.where == "played":
        job.options += ["--transport", "local"]
    if job.where == "ssh" and rng.random() < 0.15:
        job.options += ["--fanout", "1"]
    if len(job.hosts) > 1 and rng.random() < 0.2:
        job.options += ["--map-by", "node"]


def draw_output(rng, job):
    job.output = rng.choice(["out", "out", "out", "files", "files", "tee"])
    job.labels = job.np > 1
    if rng.random() < 0.3:
        job.labels = rng.random() < 0.5
        job.options.append("--tag" if job.labels else "--no-tag")
    if rng.random() < 0.15:
        job.options.append("--unbuffered")
    job.reader = rng.choice(["file", "file", "pipe", "slow"])
    job.input = rng.choice([-1, -1, -2, 0, 10, 300000])
    if job.input >= 0 and rng.random() < 0.3:
        job.options += ["--stdin", "all"]
        job.words.append("all")


def draw_program(rng, job):
    job.every = rng.choice([-1, -1, 0, 0, 2, 3, 5, 5, 7])
    job.steps = rng.choice([10, 20, 30])
    job.wrapped = rng.random() < 0.2
    job.push = rng.random() < 0.1
    job.words += [w for w in ("binary", "long", "family") if rng.random() < 0.3]
    if rng.random() < 0.1:
        job.words.append("ignore")
        job.grace = 1
    if job.input >= 0:
        job.words.append(f"input={job.input}")
    if rng.random() < 0.4 or (job.every == 0 and rng.random() < 0.5):
        job.restarts = rng.choice([0, 1, 2, 3])
    if rng.random() < 0.15:
        job.on_loss = "stop"


OWN = ("exit", "signal")  # what a rank does to itself
ON_AGENTS = ("keeper", "worker", "both", "frozen worker", "agent INT", "agent TERM", "agent HUP")
TO_DTRUN = ("INT", "INT2", "TERM", "HUP", "TSTP", "KILL", "FREEZE")
NETWORK = ("session", "cut", "cut", "blip")


def draw_kind(rng, job):
    groups = [OWN, OWN, OWN, ("rank",), ("rank",), ON_AGENTS, ON_AGENTS, TO_DTRUN, TO_DTRUN, TO_DTRUN]
    if job.where == "ssh":
        groups += [NETWORK] * 3
    if job.reader != "file" and job.output != "files":
        groups.append(("reader leaves",))
    return rng.choice(rng.choice(groups))


def draw_moment(rng, job, fault):
    fault.step = rng.randrange(1, job.steps)
    fault.delay = rng.choice([0, 0.01, 0.05]) * rng.random()
    if fault.kind in OWN:
        return
    if rng.random() < 0.15:
        fault.start, fault.delay = True, rng.random() * 0.4
    elif job.faults and rng.random() < 0.5:
        fault.after, fault.delay = True, rng.random() * rng.choice([0.03, 0.3])


def draw_fault(rng, job):
    fault = Fault(draw_kind(rng, job), rng.randrange(job.np), host=rng.randrange(len(job.hosts)))
    draw_moment(rng, job, fault)
    fault.seconds = rng.random()
    if fault.kind == "exit":
        fault.value = rng.choice([0, 1, 3, 9, 75, 255])
    elif fault.kind == "signal":
        fault.value = rng.choice([6, 9, 11, 15])
    elif fault.kind == "rank":
        fault.value = rng.choice([9, 9, 15, 19])
    elif fault.kind == "cut":
        fault.seconds = rng.choice([1.5, 4, 8, UNHURRIED])
    elif fault.kind == "blip":
        fault.seconds *= 0.4
    return fault


def allow_for(job, fault):
    """Makes short the limits that end a job with this fault."""
    if fault.kind in ("cut", "frozen worker", "FREEZE"):
        job.heartbeat = 2
    if fault.kind == "FREEZE":
        fault.seconds *= 4
    if fault.kind == "rank" and fault.value == 19:
        job.hang = 2
        job.timeout = 8  # outside of calls a stopped rank is not noticed


def draw(seed):
    rng = random.Random(seed)
    job = Job(seed, "ssh")
    draw_shape(rng, job)
    draw_output(rng, job)
    draw_program(rng, job)
    if job.labels and "long" in job.words:
        job.words.remove("long")  # labelled, a line that is not finished soon is shown in pieces
    for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 2])):
        job.faults.append(draw_fault(rng, job))
        allow_for(job, job.faults[-1])
    if job.output != "out" and rng.random() < 0.1:
        job.full = "files"
    elif job.every > 0 and rng.random() < 0.1:
        job.full = "checkpoints"
    job.words += [f"{f.rank}:{f.step}:{f.value if f.kind == 'exit' else -f.value}" for f in job.faults if f.kind in OWN]
    job.words += [f"tell={f.rank}:{f.step}" for f in job.faults if f.kind not in OWN and not f.start and not f.after]
    return job


def command(job, place, programs):
    """The command line. place: the directory of the job's files."""
    hosts = ",".join(f"{h}:{n}" for h, n in zip(job.hosts, job.slots))
    words = ["dtrun", "-np", str(job.np)]
    words += ["--hostfile", f"{place}/hosts"] if job.hostfile else ["-H", hosts]
    words += job.options
    if job.restarts >= 0:
        words += ["--max-restarts", str(job.restarts)]
    if job.on_loss != "move":
        words += ["--on-host-loss", job.on_loss]
    words += ["--heartbeat", str(job.heartbeat), "--kill-grace", str(job.grace)]
    words += ["--collective-timeout", str(job.hang)]
    if job.timeout:
        words += ["--timeout", str(job.timeout)]
    if job.output != "out":
        words += ["--output-dir", f"{disk(job, place, 'files')}/output"]
    if job.output == "tee":
        words.append("--tee")
    if job.every > 0:
        words += ["--checkpoint-dir", f"{disk(job, place, 'checkpoints')}/checkpoints"]
    words += ["--report", f"{place}/report.json"]
    if job.push:
        words += ["--push", f"{programs}/randomjob"]
    if job.wrapped:
        words += ["sh", "-c", '"$@"; exit $?', "sh"]
    words += [f"{programs}/randomjob", str(job.seed), str(job.steps), str(job.every), f"{place}/notes"]
    return words + job.words


def disk(job, place, what):
    return f"{place}/../small" if job.full == what else place
