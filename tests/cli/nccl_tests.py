#!/usr/bin/env python3
"""Reads a table as scripts for nccl-tests do, and prints what they find in it.

usage: nccl_tests.py FILE

It reads each row by a regular expression and by columns, which must agree, and prints size, count, type, redop and
root, then time, algbw, busbw and wrong for out of place and for in place. The last line has the totals."""
import re
import sys

NUMBER = r"\d+(?:\.\d+)?"
ROW = re.compile(
    r"^\s+(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)"
    rf"\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+(\d+|N/A)"
    rf"\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+(\d+|N/A)"
)
# The columns of nccl-tests end here: "%12li  %12li  %8s  %6s  %6s", then twice "  %7s  %6s  %6s  %6s".
ENDS = [12, 26, 36, 44, 52, 61, 69, 77, 85, 94, 102, 110, 118]


def main(path):
    rows = 0
    text = open(path).read()
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        match = ROW.match(line)
        if not match:
            sys.exit(f"no row of nccl-tests: {line}")
        fields = line.split()
        if list(match.groups()) != fields[:13]:
            sys.exit(f"columns and expression differ: {line}")
        begin = 0
        for value, end in zip(fields, ENDS):
            if line[begin:end].strip() != value:
                sys.exit(f"{value} does not end at column {end}: {line}")
            begin = end
        rows += 1
        print(" ".join(fields[:13]))
    average = re.search(r"^# Avg bus bandwidth\s*:\s*([\d.e+-]+)\s*$", text, re.M)
    bounds = re.search(r"^# Out of bounds values\s*:\s*(\d+)\s+(OK|FAILED)\s*$", text, re.M)
    header = re.search(r"^#\s+size\s+count\s+type\s+redop\s+root\s+time\s+algbw\s+busbw\s+#wrong\s+time", text, re.M)
    ranks = len(re.findall(r"^#\s+Rank\s+\d+\s+Group\s+\d+\s+Pid\s+\d+ on\s+\S+ device", text, re.M))
    if not (average and bounds and header):
        sys.exit("head or end of nccl-tests' table is missing")
    print(f"rows {rows} ranks {ranks} average {float(average[1]) >= 0} wrong {bounds[1]} {bounds[2]}")


main(sys.argv[1])
