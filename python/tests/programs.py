"""Programs of tests, run in Python processes of their own."""

import os
import signal
import subprocess
import sys
import textwrap

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

    def interrupt(self):
        """What Ctrl-C sends."""
        self.p.send_signal(signal.SIGINT)

    def end(self, timeout=60):
        """Waits; returns (code, rest of its output, its error output)."""
        out, err = self.p.communicate(timeout=timeout)
        return self.p.returncode, out, err

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
            self.p.communicate()
