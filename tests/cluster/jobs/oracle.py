"""Judges how a job has ended: by the rules of dtrun(1), and by what its ranks have noted."""

import re
import zlib

ORDERS = {"INT": -2, "INT2": -2, "TERM": -15, "HUP": -1, "KILL": -9, "agent INT": -2, "agent TERM": -15, "agent HUP": -1}
LOSSES = ("keeper", "worker", "both", "session", "cut", "frozen worker")
HEAD = re.compile(rb"[le] \d+\.\d+\.\d+ \d+ \d+ ")
LINE = re.compile(rb"(?:\[(\d+)\] )?([le]) (\d+)\.(\d+)\.(\d+) (\d+) (\d+) (.*)", re.DOTALL)


def landed(o, *kinds):
    return [f for f in o.landed if f.kind in kinds]


# ---- exit codes ----


def failure_code(job, f):
    """The exit code of a job that ends by this fault, None if it is no failure."""
    if f.kind == "exit" and f.value == 0:
        return 1 if job.linked and job.np > 1 else None
    if f.kind == "exit":
        return f.value
    if f.kind == "rank" and f.value == 19:
        return 124
    if f.kind in ("signal", "rank"):
        ignored = f.value == 15 and "ignore" in job.words and (f.kind == "signal" or not job.wrapped)
        return None if ignored else 128 + f.value
    if f.start and f.kind.startswith("agent "):
        return 125  # a program that is just starting dies of it
    if f.kind == "blip" or (f.kind == "FREEZE" and f.seconds < 1):
        return 125 if f.start else None
    return 125 if f.kind in LOSSES + ("FREEZE",) else None


def is_final(job, o, f, failures):
    """Whether the job ends by this failure; None: it depends."""
    if f.kind == "exit" and f.value == 75:
        return True
    if job.restarts == 0 or (job.restarts < 0 and job.every <= 0):
        return True
    if f.start or (f.after and f.kind in LOSSES) or (f.kind == "rank" and f.value == 19):
        return None
    if job.restarts < 0 and f.step == 1 and f.kind == "exit":
        return None  # other ranks may not have returned from dt_checkpoint_restore
    if 0 < job.restarts < failures:
        return None
    cut = {c.host for c in landed(o, "cut")}
    if f.kind == "cut" and (job.on_loss == "stop" or len(cut) == len(job.hosts)):
        return None
    return False


def is_finished(job, o):
    """Whether all ranks of a generation have ended well."""
    wells = [name.split(".")[1] for name, text in o.notes.items() if name.startswith("ended.") and text[:2] == "0 "]
    early = {f.rank for f in landed(o, "exit") if f.value == 0}
    return any(wells.count(g) == job.np and not (job.linked and job.np > 1 and early and g == "1") for g in wells)


def allowed_codes(job, o):
    codes = {ORDERS[f.kind] for f in landed(o, *ORDERS)}
    if landed(o, "reader leaves"):
        codes.add(141)
    failures = [(f, failure_code(job, f)) for f in o.landed if failure_code(job, f) is not None]
    for f, code in failures:
        if is_final(job, o, f, len(failures)) is not False:
            codes.add(code)
    if job.full == "files":
        codes.add(125)
    if is_finished(job, o) or not codes:
        codes.add(0)
    return codes


def judge_code(job, o):
    codes = allowed_codes(job, o)
    if o.code is None:
        yield "dtrun does not end"
    elif o.code not in codes:
        yield f"exit code {o.code} instead of {' or '.join(map(str, sorted(codes)))}"
    if o.code == 0 and not is_finished(job, o):
        yield "exit code 0 although ranks have not ended"
    if -9 != o.code is not None and (not o.report or o.report["exit_code"] != (128 - o.code if o.code < 0 else o.code)):
        if not any(f.start for f in o.landed):  # dtrun may not have begun to handle signals
            yield f"the report is {o.report and o.report['exit_code']}"
    for name, text in o.notes.items():
        if name.startswith("ended.") and text[:3] == "99 ":
            yield f"{name}: a wrong result"


# ---- messages ----


def host_of(job, o, rank):
    with_ranks = sorted({int(t.split()[0]) for n, t in o.notes.items() if n.startswith("started.1.")})
    node = int(o.notes[f"started.1.{rank}"].split()[0])
    return job.hosts[node] if len(with_ranks) == len(job.hosts) else None


def judge_messages(job, o):
    """Whether dtrun names the failure, if there is only one."""
    if len(o.landed) != 1 or job.full or o.code in (None, -9):
        return
    f = o.landed[0]
    if failure_code(job, f) is None or f.start or (o.code == 0 and not o.report["restarts"]):
        return
    if f.kind in ("exit", "signal") or (f.kind == "rank" and f.value != 19):
        host = host_of(job, o, f.rank)
        name = rf"dtrun: (preempted: )?rank {f.rank} \({re.escape(host) if host else '[a-z0-9]+'}, pid \d+\) "
    elif f.kind in LOSSES and job.where == "ssh":
        name = rf"dtrun: .*{job.hosts[f.host]}\b"
    else:
        return
    if not re.search(name.encode(), o.err):
        yield f"dtrun does not say {name}"


# ---- output ----


class Stream:
    """What has arrived of a stream: the number of whole lines of each rank and generation."""

    def __init__(self, letter):
        self.letter, self.counts, self.wrong, self.pieces = letter, {}, [], 0

    def add(self, data, labels, rank=None):
        lines = data.split(b"\n")
        for line in lines[:-1] + [last for last in lines[-1:] if last]:
            if not line.startswith(b"dtrun: "):
                self.add_line(line, labels, rank)

    def add_line(self, line, labels, rank):
        # Where nothing has a label, a line may follow what a rank was writing when it was killed.
        starts = [0] if labels else [0] + [m.start() for m in HEAD.finditer(line, 1)]
        whole = next((m for start in starts if (m := whole_line(line[start:]))), None)
        if not whole or whole.string != line:
            self.pieces += 1
            self.wrong.append(f"a broken line {line[:60]!r} ... {line[-20:]!r}")
        if whole:
            self.add_whole(whole, labels, rank)

    def add_whole(self, m, labels, rank):
        key, number = (int(m[4]), int(m[3])), int(m[5])
        label = None if m[1] is None else int(m[1])
        if m[2] != self.letter or label != (key[1] if labels else None) or rank not in (None, key[1]):
            self.wrong.append(f"a line in a wrong place or with a wrong label: {m[0][:60]!r}")
        if number != self.counts.get(key, 0):
            self.wrong.append(f"line {number} of {key} follows {self.counts.get(key, 0)} lines")
        self.counts[key] = number + 1


def whole_line(text):
    m = LINE.fullmatch(text)
    return m if m and int(m[6]) == len(m[8]) and int(m[7]) == zlib.adler32(m[8]) else None


def streams(job, o):
    if job.output != "files":
        for letter, data in ((b"l", o.out), (b"e", o.err)):
            s = Stream(letter)
            s.add(data, job.labels)
            yield ("out", "err")[letter == b"e"], s
    if job.output != "out":
        for letter, end in ((b"l", ".out"), (b"e", ".err")):
            s = Stream(letter)
            for name, data in o.files.items():
                if name.endswith(end):
                    s.add(data, False, int(name.split(".")[1]))
            yield "files" + end, s


def judge_output(job, o):
    started = {n[8:] for n in o.notes if n.startswith("started.")}
    ended = {n[6:]: t.split() for n, t in o.notes.items() if n.startswith("ended.")}
    lossy = landed(o, "KILL", "reader leaves", "FREEZE", *LOSSES) or job.full == "files" or o.code is None
    killed = len(started) if lossy else len(started - set(ended))
    for name, s in streams(job, o):
        if s.wrong and not (job.full == "files" and name != "out") and (s.pieces > killed or s.pieces < len(s.wrong)):
            yield f"{name}: {s.wrong[0]} (and {len(s.wrong) - 1} more; {killed} ranks were killed)"
        for who, (_, *counts) in ended.items():
            count, got = int(counts[s.letter == b"e"]), s.counts.get(tuple(map(int, who.split("."))), 0)
            if got > count or (got < count and not lossy):
                yield f"{name}: {got} of {count} lines of {who} have arrived"


# ---- the rest ----


def judge_remains(job, o):
    silent = landed(o, "KILL", "both", *LOSSES, "FREEZE")
    if o.ranks_left and not silent and o.code is not None:
        yield f"ranks still ran when dtrun had ended: {o.ranks_left}"
    excepted = "randomjob" if landed(o, "both") else "\0"  # dtrun-agent(8) says what stays then
    yield from (f"left: {what}" for what in o.left if excepted not in what)


def judge(job, o):
    complaints = []
    for part in (judge_code, judge_messages, judge_output, judge_remains):
        complaints += part(job, o)
    return complaints
