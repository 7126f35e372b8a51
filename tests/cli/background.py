"""Runs a command in the background of a terminal on which somebody types.

Prints whether the command was stopped (SIGTTIN), how it ended, and how much CPU time it took.
"""
import fcntl
import os
import pty
import resource
import select
import signal
import sys
import termios

terminal, shared = pty.openpty()
leader = os.fork()
if leader == 0:
    # The session leader stays in the foreground. The command gets a process group of its own.
    os.setsid()
    fcntl.ioctl(shared, termios.TIOCSCTTY, 0)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        for fd in range(3):
            os.dup2(shared, fd)
        os.closerange(3, 64)
        os.execvp(sys.argv[1], sys.argv[1:])
    stopped, status = False, None
    while status is None:
        _, code = os.waitpid(pid, os.WUNTRACED)
        if os.WIFSTOPPED(code):
            stopped = True
            os.killpg(pid, signal.SIGKILL)
        else:
            status = code
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = usage.ru_utime + usage.ru_stime
    lines = "exit code %s\n" % os.waitstatus_to_exitcode(status)
    lines += "was stopped\n" if stopped else "was not stopped\n"
    lines += "took less than 0.5 s\n" if busy < 0.5 else "took %.1f s\n" % busy
    os.write(shared, lines.encode())
    os._exit(0)

seen, ended = b"", False
while not ended or select.select([terminal], [], [], 0)[0]:
    if select.select([terminal], [], [], 0.05)[0]:
        if not seen:
            os.write(terminal, b"typed\n")
        seen += os.read(terminal, 65536)
    if not ended:
        ended = os.waitpid(leader, os.WNOHANG)[0] != 0
sys.stdout.write(seen.decode(errors="replace").replace("\r\n", "\n"))
