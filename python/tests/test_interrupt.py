"""Ctrl-C, and other signals, during calls that wait. Deadlines are generous; that it takes less than a second is measured in bench."""

import pytest

from programs import Running

TWO = """
one, two = gccl.Communicator.init_all(2, device="host")
x = bytearray(1 << 16)
print("waiting", flush=True)
"""
WAITS = {
    "allreduce": TWO + "one.allreduce(x)",
    "small allreduce": TWO + "for _ in range(100): one.allreduce(bytearray(4))",  # the first may need nobody
    "recv": TWO + "one.recv(x, 1)",
    "send": TWO + "one.send(x, 1)",
    "wait_signal": TWO + "one.wait_signal(gccl.WaitSignalDesc(1))",
    "group": TWO + "with gccl.group():\n  one.recv(x, 1)\n  two.recv(x, 0)",
    "stream": TWO + "s = gccl.Stream()\none.recv(x, 1, stream=s)\ns.synchronize()",
    "split": TWO + "one.split(0)",
    "window": TWO + "w = gccl.mem_alloc(4096, device='host')\none.register_window(w)",
    "nonblocking": """
uid = gccl.get_unique_id()
c = gccl.Communicator.init(2, 0, uid, gccl.NCCLConfig(blocking=False), device="host")
print("waiting", flush=True)
c.wait()
""",
    "init": """
uid = gccl.get_unique_id()
print("waiting", flush=True)
gccl.Communicator.init(2, 0, uid, device="host")
""",
    "init in a group": """
uid = gccl.get_unique_id()
print("waiting", flush=True)
with gccl.group():
  cs = [gccl.Communicator.init(3, r, uid, device="host") for r in range(2)]
""",
}


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c(what):
    """KeyboardInterrupt is raised, the program can go on, and it ends by itself."""
    body = WAITS[what].strip().replace("\n", "\n    ")
    code = f"""
try:
    {body}
except KeyboardInterrupt:
    print("interrupted", flush=True)
(c,) = gccl.Communicator.init_all(1, device="host")
c.allreduce(bytearray(4))
c.destroy()
print("usable", flush=True)
"""
    with Running(code) as p:
        assert p.line() == "waiting", p.end()
        p.interrupt()
        code, out, err = p.end()
    assert out.split() == ["interrupted", "usable"] and code == 0, (code, out, err)


def test_uncaught():
    """The usual traceback and end of a program."""
    with Running(TWO + "one.recv(x, 1)") as p:
        assert p.line() == "waiting"
        p.interrupt()
        code, out, err = p.end()
    assert code != 0 and "KeyboardInterrupt" in err and "Exception ignored" not in err, (code, out, err)


def test_a_handler_that_returns_lets_the_wait_go_on():
    """As with Python's own system calls (PEP 475)."""
    code = (
        "signal.signal(signal.SIGINT, lambda *_: print('handled', flush=True))\n"
        + TWO
        + "def other():\n  sys.stdin.readline()\n  two.send(bytearray(b'x') * (1 << 16), 0)\n"
        + "t = threading.Thread(target=other)\nt.start()\none.recv(x, 1)\nprint(x[:1].decode(), flush=True)\nt.join()\n"
    )
    import subprocess
    import sys

    import programs

    with Running.__new__(Running) as p:
        p.p = subprocess.Popen(
            [sys.executable, "-c", programs.START + code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=programs.environment(),
        )  # fmt: skip
        assert p.line() == "waiting"
        for _ in range(2):
            p.interrupt()
            assert p.line() == "handled"
        p.p.stdin.write("go\n")
        p.p.stdin.flush()
        assert p.line() == "x"
        assert p.end()[0] == 0


def test_any_exception_of_a_handler():
    """SystemExit of a SIGTERM handler, for instance, comes out of the call."""
    code = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n" + TWO + "one.recv(x, 1)"
    with Running(code) as p:
        assert p.line() == "waiting"
        p.settle()
        p.p.terminate()
        assert p.end()[0] == 7


def test_the_communicator_has_failed_afterwards():
    code = (
        "try:\n  "
        + TWO.strip().replace("\n", "\n  ")
        + "\n  one.recv(x, 1)\nexcept KeyboardInterrupt:\n  pass\n"
        + "try:\n  one.allreduce(x)\nexcept gccl.NCCLSystemError as e:\n  print('gcclSetInterrupt' in str(e), flush=True)\n"
        + "child = one.shrink([1], flag=gccl.CommShrinkFlag.ABORT)\nchild.allreduce(x)\nprint(child.nranks)\n"
    )
    with Running(code) as p:
        assert p.line() == "waiting"
        p.interrupt()
        code, out, err = p.end()
    assert out.split() == ["True", "1"] and code == 0, (code, out, err)


def test_a_program_without_the_library_is_untouched():
    with Running("print('waiting', flush=True)\ntime.sleep(30)") as p:
        assert p.line() == "waiting"
        p.interrupt()
        code, _, err = p.end()
    assert "KeyboardInterrupt" in err and code != 0
