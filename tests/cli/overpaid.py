#!/usr/bin/env python3
"""A dtrun-agent that grants credit for standard input although none of its ranks reads it.

$OVERPAID_AGENT is the real agent, which does everything else.
"""
import os
import subprocess
import sys

READY, STDIN_CREDIT = 43, 41


def frame(type_, payload):
    return len(payload).to_bytes(4, "little") + bytes([type_, 0, 0, 0]) + payload


agent = subprocess.Popen([os.environ["OVERPAID_AGENT"]], stdout=subprocess.PIPE)
out = sys.stdout.buffer
out.write(agent.stdout.readline())
out.flush()
while len(header := agent.stdout.read(8)) == 8:
    payload = agent.stdout.read(int.from_bytes(header[:4], "little"))
    out.write(header + payload)
    if header[4] == READY:
        out.write(frame(STDIN_CREDIT, payload[:4] + (65536).to_bytes(4, "little")))
    out.flush()
sys.exit(agent.wait())
