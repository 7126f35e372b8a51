"""Runs a command on a terminal of its own and presses keys there.

usage: keys.py [N TEXT KEY]... -- COMMAND... : waits until TEXT has appeared N times and presses KEY, "^C"
or "^Z". Does the same with the next three words, and at the end prints how the command ended. It sends no
signal: as for a user, process groups decide which processes a key reaches. The command leads the terminal's
session, as after "ssh -t", so no shell could continue it if it were stopped.
"""
import fcntl
import os
import pty
import select
import sys
import termios

KEYS = {"^C": b"\x03", "^Z": b"\x1a"}

end = sys.argv.index("--")
words, command = sys.argv[1:end], sys.argv[end + 1:]
steps = [(int(words[i]), words[i + 1].encode(), KEYS[words[i + 2]]) for i in range(0, len(words), 3)]
terminal, shared = pty.openpty()
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(shared, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(shared, fd)
    os.closerange(3, 64)
    os.execvp(command[0], command)

seen, status = b"", None
while status is None or select.select([terminal], [], [], 0)[0]:
    if select.select([terminal], [], [], 0.05)[0]:
        seen += os.read(terminal, 65536)
    if steps and seen.count(steps[0][1]) >= steps[0][0]:
        os.write(terminal, steps.pop(0)[2])
    if status is None:
        done, code = os.waitpid(pid, os.WNOHANG)
        status = code if done else None
sys.stdout.write(seen.decode(errors="replace").replace("\r\n", "\n"))
print("exit code", os.waitstatus_to_exitcode(status))
# This process shares the file description with the command, as a shell does.
nonblocking = fcntl.fcntl(shared, fcntl.F_GETFL) & os.O_NONBLOCK
print("terminal does not block" if nonblocking else "terminal blocks")
