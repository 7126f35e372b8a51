#!/usr/bin/env python3
"""A dtrun-agent whose ranks stay at the gate: passes on every message of dtrun except GO.

$NOGO_AGENT is the real agent. The file $NOGO_SEEN is made when GO arrives.
"""
import os
import select
import subprocess
import sys

GO = 11


def take(n):
    """Reads n bytes of standard input, or fewer at its end. (The agent shares the socket and has made it
    non-blocking.)"""
    data = b""
    while len(data) < n:
        select.select([0], [], [])
        piece = os.read(0, n - len(data))
        if not piece:
            break
        data += piece
    return data


agent = subprocess.Popen([os.environ["NOGO_AGENT"]], stdin=subprocess.PIPE)
while len(header := take(8)) == 8:
    payload = take(int.from_bytes(header[:4], "little"))
    if header[4] == GO:
        open(os.environ["NOGO_SEEN"], "w").close()
        continue
    try:
        agent.stdin.write(header + payload)
        agent.stdin.flush()
    except BrokenPipeError:
        break
agent.stdin.close()
sys.exit(agent.wait())
