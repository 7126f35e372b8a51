"""The driver of tests/cluster/random."""

import argparse
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import oracle
from draw import command, draw
from run import BUILD, SHARED, run


def resumed(job, place):
    """The job once more, undisturbed, from the checkpoints that it has left."""
    faults = [w for w in job.words if w.startswith("tell=") or w[0].isdigit()]
    words = [w for w in job.words if w not in faults and not w.startswith("input=")]
    options = job.options + ["--checkpoint-dir", f"{place}/checkpoints", "--resume"]
    return replace(job, words=words, options=options, faults=[], input=-1, full="", timeout=0, reader="file")


def report(job, place, o, complaints):
    for text in complaints:
        print(f"seed {job.seed}: {text}")
    print(f"  faults: {'; '.join(map(str, o.landed)) or 'none'}; exit code {o.code} after {o.seconds:.2f} s")
    print(f"  {shlex.join(command(job, place, BUILD / 'tests/rank'))}")
    for line in [line for line in o.err.split(b"\n") if line.startswith(b"dtrun")][-20:]:
        print(f"  {line[:300].decode(errors='replace')}")


def run_seed(seed, place, show):
    job = draw(seed)
    o = run(job, place)
    complaints = oracle.judge(job, o)
    if complaints or show:
        report(job, place, o, complaints)
    if job.every > 0 and o.code != 0 and not job.full and not complaints:
        job = resumed(job, place)
        o = run(job, f"{place}/again")
        complaints = oracle.judge(job, o)
        if complaints or show:
            report(job, f"{place}/again", o, complaints)
    sys.stdout.flush()
    return not complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--from", type=int, default=1, dest="first_seed")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--first", action="store_true")
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    if given.seed is not None:
        seeds = [given.seed] * given.times
    ran = failed = 0
    for seed in seeds:
        place = SHARED / f"randomjob.{seed}"
        ran += 1
        if run_seed(seed, place, given.seed is not None and given.times == 1):
            shutil.rmtree(place)
        else:
            failed += 1
            kept = Path.cwd() / f"randomjob.{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(place, kept)
            print(f"  files: {kept}; repeat it with: tests/cluster/random --seed {seed}", flush=True)
            if given.first:
                break
    print(f"{ran} seeds, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
