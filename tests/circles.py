#!/usr/bin/env python3
"""Checks that files and folders depend on each other in one direction. Prints each circle between
files and each between folders, from the symbols of a build's objects, and each #include that goes
against the order of the layers in ARCHITECTURE.md. Prints each folder that holds more files than
one can take in, and each symbol that two sources define. usage: circles.py BUILD_DIR SOURCE_DIR"""
import os
import re
import subprocess
import sys

PARTS = ("cmd", "launcher", "runtime")
FOLDERS = (*PARTS, "docs", "examples", "man", "tests")
FILES_MAX = 40  # in one folder, without its subfolders
WRITTEN = re.compile(r"\.(c|h|cu|py|sh|bash|bats|md|[1-8])$")  # by people, not by a build

# A folder includes headers only of itself and of later rows ("Layers" in ARCHITECTURE.md). Folders
# of one row do not include each other. Subfolders belong to their folder.
LAYERS = {
    "launcher": (
        ("launcher/check", "launcher/driver"),
        ("launcher/job",),
        ("launcher/session",),
        ("launcher/watch",),
        ("launcher/remote", "launcher/io", "launcher/agent"),
        ("launcher/place",),
        ("launcher/hosts",),
        ("launcher/base",),
        ("runtime/wire",),
    ),
    "runtime": (
        ("runtime",),
        ("runtime/checkpoint",),
        ("runtime/api",),
        ("runtime/p2p",),
        ("runtime/gpu",),
        ("runtime/comm",),
        ("runtime/coll",),
        ("runtime/shm", "runtime/tcp"),
        ("runtime/diag",),
        ("runtime/world",),
        ("runtime/base",),
        ("runtime/kernels",),
        ("runtime/wire",),
    ),
}
PUBLIC = re.compile(r"(runtime/)?dtrun(_tune)?\.h$")  # what users include stands below all layers


def layer_of(path, rows):
    """The row of the folder that holds a file, and that folder; None if it is in no row."""
    folder = os.path.dirname(path)
    while folder:
        for row, folders in enumerate(rows):
            if folder in folders:
                return row, folder
        folder = os.path.dirname(folder)
    return None


def includes(sources, part):
    """Each pair of a file of the part and a header that it includes."""
    for folder, _, files in sorted(os.walk(os.path.join(sources, part))):
        for name in sorted(files):
            if name.endswith((".c", ".h")):
                path = os.path.relpath(os.path.join(folder, name), sources)
                with open(os.path.join(folder, name), encoding="utf-8") as text:
                    for header in re.findall(r'^#\s*include "([^"]+)"', text.read(), re.M):
                        yield path, header


def against_the_layers(sources):
    """A line for each #include that goes to an earlier row, to another folder of the same, or to a
    folder that has no row in the file's part."""
    for part, rows in LAYERS.items():
        for path, header in includes(sources, part):
            here, there = layer_of(path, rows), layer_of(header, rows)
            if PUBLIC.match(header) or (here and there and here[1] == there[1]):
                continue
            if not here or not there or there[0] <= here[0]:
                yield f"an include against the layers: {path} includes {header}"


def crowded(sources):
    """A line for each folder that has more than FILES_MAX files."""
    for part in FOLDERS:
        for folder, _, files in sorted(os.walk(os.path.join(sources, part))):
            n = sum(1 for name in files if WRITTEN.search(name))
            if n > FILES_MAX:
                path = os.path.relpath(folder, sources)
                yield f"a crowded folder: {path} has {n} files, {FILES_MAX} at most are allowed"


def objects(build, sources):
    """Yields each object of the products with its source, without the suffix. (A build keeps objects
    of removed sources.)"""
    for part in PARTS:
        for folder, _, files in os.walk(os.path.join(build, part)):
            for name in files:
                if name.endswith(".o"):
                    path = os.path.join(folder, name)
                    source = os.path.relpath(path, build)[: -len(".o")]
                    source = re.sub(r"/[A-Za-z0-9_]+-(?=[^/]*$)", "/", source)
                    if os.path.exists(os.path.join(sources, source + ".c")):
                        yield path, source


def symbols(build, sources):
    """Returns for each symbol the sources that define it, and for each source the symbols that it needs."""
    source_of = dict(objects(build, sources))
    defined, needed = {}, {source: set() for source in source_of.values()}
    if not source_of:
        return defined, needed
    nm = ["nm", "-A", "-P", *source_of]
    text = subprocess.run(nm, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        path, symbol = line.rsplit(": ", 1)
        name, kind = symbol.split()[:2]
        source = source_of[path]
        if kind in "TDBRVW":
            defined.setdefault(name, set()).add(source)
        elif kind == "U":
            needed[source].add(name)
    return defined, needed


def circles(graph):
    """Returns the sets of nodes that all reach each other (Tarjan's algorithm)."""
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found


def defined_twice(defined):
    """A line for each symbol that several sources define: which one a program gets depends on the order of
    its libraries."""
    for symbol, sources in sorted(defined.items()):
        if len(sources) > 1 and symbol != "main":
            yield f"defined twice: {symbol} in {' and in '.join(sorted(sources))}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.setrecursionlimit(10000)
    defined, needed = symbols(sys.argv[1], sys.argv[2])
    if not needed:
        sys.exit(f"circles: no objects below {sys.argv[1]}: build first")
    files, folders = {}, {}
    for source, names in needed.items():
        files[source] = {d for n in names for d in defined.get(n, ()) if d != source}
        for other in files[source]:
            here, there = os.path.dirname(source), os.path.dirname(other)
            if here != there:
                folders.setdefault(here, set()).add(there)
    status = 0
    for what, graph in ("files", files), ("folders", folders):
        for circle in circles(graph):
            print(f"a circle of {what}: {' '.join(circle)}")
            status = 1
    for line in (*against_the_layers(sys.argv[2]), *crowded(sys.argv[2]), *defined_twice(defined)):
        print(line)
        status = 1
    sys.exit(status)


main()
