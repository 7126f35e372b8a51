#!/usr/bin/env python3
"""Makes two network cards and carries packets between them, as a slow, distant, lossy line does.

far.py CARD CARD MILLISECONDS BITS PERCENT: each direction has this delay, carries this many bits a second,
and loses this percentage of packets. On SIGTERM it prints how many packets it carried and lost, and ends.
"""
import collections
import fcntl
import os
import random
import select
import signal
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME = 2048  # bytes, more than an Ethernet packet has
QUEUE = 0.25  # seconds that a packet may wait for its turn; others are lost


class Way:
    """The direction from one card to the other."""

    def __init__(self, source, to, delay, bits, loss):
        self.source, self.to, self.delay, self.bits, self.loss = source, to, delay, bits, loss
        self.random = random.Random(source)
        self.under_way = collections.deque()  # (when it arrives, packet)
        self.idle_at = 0.0
        self.carried = self.lost = 0

    def take(self, packet, now):
        begins = max(now, self.idle_at)
        if self.random.random() < self.loss or begins - now > QUEUE:
            self.lost += 1
            return
        self.idle_at = begins + len(packet) * 8 / self.bits
        self.under_way.append((self.idle_at + self.delay, packet))

    def take_all(self, now):
        try:
            while True:
                self.take(os.read(self.source, FRAME), now)
        except BlockingIOError:
            pass

    def deliver(self, now):
        while self.under_way and self.under_way[0][0] <= now:
            packet = self.under_way.popleft()[1]
            try:
                os.write(self.to, packet)
                self.carried += 1
            except OSError:
                pass  # at the beginning the card is not up yet

    def next_at(self):
        return self.under_way[0][0] if self.under_way else float("inf")


def make_card(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


def carry(ways):
    while True:
        wait = min(way.next_at() for way in ways) - time.monotonic()
        ready = select.select([way.source for way in ways], [], [], max(0.0, min(wait, 1.0)))[0]
        now = time.monotonic()
        for way in ways:
            if way.source in ready:
                way.take_all(now)
            way.deliver(now)


def main():
    names, (delay, bits, loss) = sys.argv[1:3], map(float, sys.argv[3:])
    one, other = map(make_card, names)
    ways = [Way(*ends, delay / 1000, bits, loss / 100) for ends in ((one, other), (other, one))]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        carry(ways)
    finally:
        print(*("carried %d, lost %d" % (way.carried, way.lost) for way in ways), sep="\n")


main()
