"""Programs of tests, run in Python processes of their own."""

import os
import signal
import subprocess
import sys
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
START = "import os, sys, time, signal, threading\nimport gccl\n"


def environment(**more):
    """That of the tests, with the package of this tree."""
    path = os.pathsep.join([os.path.dirname(HERE), HERE, os.environ.get("PYTHONPATH", "")])
    return dict(os.environ, PYTHONPATH=path, PYTHONUNBUFFERED="1", **more)


def run(code, timeout=60, **env):
    """Runs code and returns the finished process, text output included."""
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", START + textwrap.dedent(code)],
        capture_output=True, text=True, timeout=timeout, env=environment(**env),
    )  # fmt: skip


def good(code, timeout=60, **env):
    """Runs code, which must end well; returns what it printed."""
    p = run(code, timeout, **env)
    assert p.returncode == 0, f"code {p.returncode}\n{p.stdout}\n{p.stderr}"
    return p.stdout


class Running:
    """A program that prints lines while it runs."""

    def __init__(self, code, **env):
        self.p = subprocess.Popen(
            [sys.executable, "-c", START + textwrap.dedent(code)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**env),
        )  # fmt: skip

    def __enter__(self):
        return self

    def line(self):
        """Its next line."""
        return self.p.stdout.readline().strip()

    def settle(self):
        """Waits until the main thread sleeps: it is in the call that waits by then, and not on its way to it."""
        asleep, end = 0, time.monotonic() + 20
        while asleep < 8 and time.monotonic() < end and self.p.poll() is None:
            with open(f"/proc/{self.p.pid}/stat") as f:  # proc(5): the state follows the name in parentheses
                asleep = asleep + 1 if f.read().rpartition(")")[2].split()[0] == "S" else 0
            time.sleep(0.01)

    def interrupt(self):
        """What Ctrl-C sends, to a program that waits."""
        self.settle()
        self.p.send_signal(signal.SIGINT)

    def end(self, timeout=60):
        """Waits; returns (code, rest of its output, its error output)."""
        out, err = self.p.communicate(timeout=timeout)
        return self.p.returncode, out, err

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
            self.p.communicate()
