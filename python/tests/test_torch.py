"""The backend of torch.distributed on CPU tensors. With torch 1.13 and later; what a version lacks is skipped by name."""

import os
import socket
import subprocess
import sys

import pytest

import programs

torch = pytest.importorskip("torch", reason="torch is not installed")
import torch.distributed as dist  # noqa: E402

if not dist.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

import gccl.torch  # noqa: E402
import torch_ranks as ranks  # noqa: E402


@pytest.mark.parametrize(
    "what",
    [ranks.reductions, ranks.moves, ranks.messages, ranks.asynchronous, ranks.objects, ranks.groups, ranks.coalesced, ranks.refused],
    ids=lambda f: f.__name__,
)
def test_backend(torch_ranks, what):
    torch_ranks.run(what)


def test_ddp_equals_gloo(tmp_path):
    """The same losses and weights as over gloo, to rounding: both add in fp32, in an order of their own."""
    ranks.launch(ranks.train, 2, str(tmp_path / "gccl"))
    code = f"""
        import torch_ranks, torch.distributed as dist, torch.multiprocessing as mp
        r = int(sys.argv[1]) if len(sys.argv) > 1 else 0
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=int(os.environ["R"]), world_size=2)
        torch_ranks.train(int(os.environ["R"]), 2, "{tmp_path}/gloo")
    """
    with programs.Running(code, R="0") as a, programs.Running(code, R="1") as b:
        for p in (a, b):
            status, out, err = p.end(120)
            assert status == 0, err
    (loss, weights), (loss_gloo, weights_gloo) = torch.load(tmp_path / "gccl"), torch.load(tmp_path / "gloo")
    assert loss[-1] < loss[0]
    torch.testing.assert_close(torch.tensor(loss), torch.tensor(loss_gloo), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(weights, weights_gloo, rtol=1e-4, atol=1e-6)


def test_messages_of_ranks_that_meet_over_tcp():
    """A thread that waits for a key of the store must not keep others from setting theirs."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ranks.launch(ranks.messages, 2, meet=f"tcp://127.0.0.1:{port}")


def test_a_late_rank_is_a_timeout():
    ranks.launch(ranks.late, 2, seconds=3)


def test_forked_data_loader():
    """Workers that are forked from a rank do not touch the library, and do not disturb it."""
    programs.good(
        """
        import torch, torch.distributed as dist, gccl.torch
        dist.init_process_group("gccl", init_method="file://" + os.environ["MEET"], rank=0, world_size=1)
        x = torch.ones(3)
        dist.all_reduce(x)
        data = torch.utils.data.DataLoader(torch.arange(100.0), batch_size=10, num_workers=2, multiprocessing_context="fork")
        assert sum(b.sum().item() for b in data) == 4950
        dist.all_reduce(x)
        """,
        MEET=os.path.join(os.environ.get("TMPDIR", "/tmp"), f"gccl-test-{os.getpid()}"),
    )


def test_exit_without_destroy():
    p = programs.run(
        """
        import torch, torch.distributed as dist, gccl.torch
        dist.init_process_group("gccl", init_method="file://" + os.environ["MEET"], rank=0, world_size=1)
        works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(10)]
        """,
        MEET=os.path.join(os.environ.get("TMPDIR", "/tmp"), f"gccl-exit-{os.getpid()}"),
    )
    assert p.returncode == 0 and "Traceback" not in p.stderr, p.stderr


def test_empty():
    t = gccl.torch.empty(4, 5, dtype=torch.bfloat16)
    t.fill_(2)
    assert t.shape == (4, 5) and t.data_ptr() % 4096 == 0 and t.sum() == 40
    part = t[1]
    del t
    assert (part == 2).all()
    (c,) = gccl.Communicator.init_all(1, device="host")
    x = gccl.torch.empty((1000,))
    with c.register_window(x):
        c.allreduce(x.fill_(3))
    assert (x == 3).all()
    c.destroy()


def test_preload_line_is_what_preload_does():
    """preload() runs the program again with the library in front; the second run goes on."""
    line = gccl.torch.preload_line()
    assert line.startswith("LD_PRELOAD=/") and os.path.exists(line.partition("=")[2])
    script = "import gccl.torch, os, gccl; gccl.torch.preload(); print(os.environ['LD_PRELOAD'], gccl.library_info().loaded_by)"
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"gccl-preload-{os.getpid()}.py")
    with open(path, "w") as f:
        f.write(script)
    env = programs.environment()
    env.pop("GCCL_LIBRARY", None)
    try:
        out = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, env=env)
    finally:
        os.unlink(path)
    assert out.stdout.split() == [line.partition("=")[2], "LD_PRELOAD"], out.stderr
