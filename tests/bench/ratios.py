#!/usr/bin/env python3
"""Runs programs that measure a series of sizes, in turn, and compares them size by size.

    ratios.py ROUNDS NAME=COMMAND ...

Each COMMAND, run by bash, prints lines "BYTES MICROSECONDS". In each round every command runs once. The table
has the median of the rounds, and by how much the first command is faster than the best of the others: the
median over the rounds of the shortest of their times divided by its own. A command that fails is left out,
with a message.
"""
import math
import statistics
import subprocess
import sys


def run(command):
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-3:]
    pairs = (line.split() for line in done.stdout.splitlines())
    return {int(size): float(us) for size, us in pairs}, None


def measure(rounds, commands):
    """Returns for each name a list with a dictionary {bytes: microseconds} for each round."""
    results = {name: [] for name in commands}
    for _ in range(rounds):
        for name in list(results):
            figures, error = run(commands[name])
            if figures is None:
                print(f"{name} is left out: {' / '.join(error)}", file=sys.stderr)
                del results[name]
            else:
                results[name].append(figures)
    return results


def mean_of(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def print_table(results):
    ours, *peers = results
    print(f"{'bytes':>12}" + "".join(f"{name:>14}" for name in results) + f"{'best peer by ours':>20}")
    ratios = {}
    for size in results[ours][0]:
        line = f"{size:12}"
        for name in results:
            line += f"{statistics.median(figures[size] for figures in results[name]):11.2f} us"
        if peers:
            ratios[size] = statistics.median(
                min(peer[size] for peer in others) / mine[size]
                for mine, *others in zip(*results.values()))
            line += f"{ratios[size]:20.2f}"
        print(line)
    for name, chosen in (("up to 64 KiB", [r for size, r in ratios.items() if size <= 65536]),
                         ("above 64 KiB", [r for size, r in ratios.items() if size > 65536]),
                         ("all sizes", list(ratios.values()))):
        if chosen:
            print(f"{'geometric mean, ' + name:32}{mean_of(chosen):6.2f}"
                  f"   least {min(chosen):.2f}")
    sys.stdout.flush()


def main():
    if len(sys.argv) < 3 or not all("=" in arg for arg in sys.argv[2:]):
        sys.exit(__doc__)
    results = measure(int(sys.argv[1]), dict(arg.split("=", 1) for arg in sys.argv[2:]))
    print_table(results)


main()
