"""Runs a command on a terminal of its own and presses Ctrl-C there.

usage: ctrl_c.py TIMES READY COMMAND... : waits until the command has written "ready" READY times, presses
Ctrl-C TIMES times, each when the last one was heard, and tells how the command ended. No signal is sent:
whom Ctrl-C reaches is decided by process groups, as it is for a user.
"""
import fcntl
import os
import pty
import select
import sys
import termios

times, ready, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
terminal, shared = pty.openpty()
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(shared, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(shared, fd)
    os.closerange(3, 64)
    os.execvp(command[0], command)

seen, pressed, status = b"", 0, None
while status is None or select.select([terminal], [], [], 0)[0]:
    if select.select([terminal], [], [], 0.05)[0]:
        seen += os.read(terminal, 65536)
    heard = seen.count(b"ready") >= ready if pressed == 0 else b"interrupted" in seen
    if heard and pressed < times:
        os.write(terminal, b"\x03")
        pressed += 1
    if status is None:
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else None
sys.stdout.write(seen.decode(errors="replace").replace("\r\n", "\n"))
print("exit code", os.waitstatus_to_exitcode(status))
# The file description that the command was given is this process's too, as it is the shell's.
nonblocking = fcntl.fcntl(shared, fcntl.F_GETFL) & os.O_NONBLOCK
print("terminal does not block" if nonblocking else "terminal blocks")
