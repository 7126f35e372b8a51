"""Mounts a file system that does not respond, until a line is written to the pipe.

hungfs.py DIR PIPE: prints "mounted" when DIR hangs. After the line, whoever waits for it gets ENOTCONN.
"""
import ctypes
import os
import sys

where, pipe = sys.argv[1:]
kernel = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % kernel
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"hung", os.fsencode(where), b"fuse", 0, options) < 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
with open(pipe) as waiting:
    waiting.readline()
