#!/usr/bin/env python3
"""Runs commands in turn, many times over, and prints how long each took.

    compare.py ROUNDS NAME=COMMAND ...

A COMMAND runs by itself, or by bash if it needs a shell. In each round every command runs once, and each
round begins with another command, so that disturbances of the machine affect all alike. Unless there is only one
round, an extra one comes first and is not counted: it warms caches and sends agents. A command that fails ends the
whole measurement. One that takes longer than two minutes is ended and left out, with a message.

The table has, for each command, the median and the quartiles of the wall time, the median of the CPU time of
the whole machine (because SSH servers are no children of the command), and the median over the rounds of the
first command's time divided by this one's.
"""
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time

SHELL_SIGNS = set("|&;<>()$`\\\"'*?[]#~\n")
TICK = os.sysconf("SC_CLK_TCK")
LIMIT_S = 120


def argv_of(command):
    if SHELL_SIGNS & set(command):
        return ["bash", "-c", command]
    return shlex.split(command)


def machine_cpu():
    """Returns the seconds that all processors have been busy."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq = map(int, stat.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / TICK


def run(name, argv):
    """Returns the seconds and the CPU time, or None if the command took too long."""
    cpu = machine_cpu()
    began = time.perf_counter()
    # A session, so that a command that hangs can be ended with its children.
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, start_new_session=True) as command:
        try:
            errors = command.communicate(timeout=LIMIT_S)[1]
        except subprocess.TimeoutExpired:
            os.killpg(command.pid, signal.SIGKILL)
            print(f"{name} is left out: it took longer than {LIMIT_S} s", file=sys.stderr)
            return None
    seconds = time.perf_counter() - began
    if command.returncode:
        sys.exit(f"{name} failed ({command.returncode}): {shlex.join(argv)}\n"
                 + errors.decode(errors="replace"))
    return seconds, machine_cpu() - cpu


def measure(rounds, commands):
    """Returns for each name a list with a pair (seconds, cpu) for each round."""
    times = {name: [] for name in commands}
    warm = int(rounds > 1)
    for i in range(warm + rounds):
        names = list(times)
        start = i % len(names)
        for name in names[start:] + names[:start]:
            pair = run(name, commands[name])
            if pair is None:
                del times[name]
            elif i >= warm:
                times[name].append(pair)
        if not times:
            sys.exit(1)
    return times


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def print_table(times):
    names = list(times)
    width = max(map(len, names)) + 2
    base = [seconds for seconds, _ in times[names[0]]]
    print(f"{'':{width}}{'median':>10}{'quartiles':>20}{'CPU':>10}   {names[0]} takes")
    for name in names:
        walls = [seconds for seconds, _ in times[name]]
        low, high = quartiles(walls)
        line = f"{name:{width}}{statistics.median(walls):8.3f} s"
        line += f"{f'{low:.3f} - {high:.3f}':>18} s"
        line += f"{statistics.median(cpu for _, cpu in times[name]):8.2f} s"
        if name != names[0]:
            ratio = statistics.median(mine / its for mine, its in zip(base, walls))
            line += f"   {ratio:.2f} of it"
        print(line)
    sys.stdout.flush()


def main():
    if len(sys.argv) < 3 or not all("=" in arg for arg in sys.argv[2:]):
        sys.exit(__doc__)
    commands = dict(arg.split("=", 1) for arg in sys.argv[2:])
    print_table(measure(int(sys.argv[1]), {k: argv_of(v) for k, v in commands.items()}))


main()
