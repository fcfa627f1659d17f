"""Builds the wheel: the build backend of pyproject.toml (PEP 517), with nothing but Python's own library and binutils.

A wheel is a zip of the package, the two libraries in gccl/lib, and three text files (packaging.python.org, binary distribution
format). The libraries come from ``GCCL_LIB_DIR`` or ``build/lib`` of this repository; ``make wheel`` builds them first.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LIBRARIES = ("libgccl.so", "libgccl_core.so")
SUMMARY = "NCCL's collectives on CPUs and GPUs, for Python and PyTorch"


def version():
    """That of gccl/_version.py."""
    with open(os.path.join(HERE, "gccl", "_version.py"), encoding="utf-8") as f:
        return re.search(r'__version__ = "(.+)"', f.read()).group(1)


def glibc_needed(path):
    """The newest glibc version among the symbols that a library needs, as (major, minor)."""
    out = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True).stdout
    found = {tuple(map(int, m.split(".")[:2])) for m in re.findall(r"\bGLIBC_(\d+\.\d+(?:\.\d+)?)", out)}
    return max(found, default=(2, 5))


def platform_tag(paths):
    """manylinux_X_Y_ARCH (PEP 600): X.Y is the glibc that the libraries really need."""
    major, minor = max(glibc_needed(p) for p in paths)
    arch = sysconfig.get_platform().split("-")[-1]
    return f"manylinux_{major}_{minor}_{arch}"


def sources():
    """Files of the package, as (path in the wheel, path here)."""
    for folder, _, names in sorted(os.walk(os.path.join(HERE, "gccl"))):
        for name in sorted(names):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, HERE)
            if name.endswith((".py", ".typed")) and not inside.startswith(os.path.join("gccl", "lib")):
                yield inside, path


def libraries(folder):
    """Copies of the libraries without debug information, in folder."""
    origin = os.environ.get("GCCL_LIB_DIR", os.path.join(ROOT, "build", "lib"))
    for name in LIBRARIES:
        source = os.path.join(origin, name)
        if not os.path.exists(source):
            raise SystemExit(f"no {source}: build it (make build), or name its folder in GCCL_LIB_DIR")
        copy = os.path.join(folder, name)
        shutil.copy(source, copy)
        subprocess.run(["strip", "--strip-unneeded", copy], check=True)
        yield "gccl/lib/" + name, copy


def _metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    return (
        "Metadata-Version: 2.1\n"
        f"Name: gccl\nVersion: {version()}\nSummary: {SUMMARY}\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"
        "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
        "Provides-Extra: torch\nRequires-Dist: torch; extra == 'torch'\n"
        "Classifier: Programming Language :: Python :: 3\nClassifier: Operating System :: POSIX :: Linux\nClassifier: Typing :: Typed\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )


def _write(archive, record, name, data, mode):
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes whenever it is built
    info.external_attr = (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record.append(f"{name},sha256={digest},{len(data)}\n")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517. Returns the file name."""
    with tempfile.TemporaryDirectory() as scratch:
        files = list(libraries(scratch))
        tag = f"py3-none-{platform_tag([path for _, path in files])}"
        info = f"gccl-{version()}.dist-info"
        name = f"gccl-{version()}-{tag}.whl"
        record = []
        with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
            for inside, path in [*sources(), *files, (f"{info}/licenses/LICENSE", os.path.join(ROOT, "LICENSE"))]:
                with open(path, "rb") as f:
                    _write(archive, record, inside, f.read(), 0o755 if inside.endswith(".so") else 0o644)
            wheel = f"Wheel-Version: 1.0\nGenerator: gccl\nRoot-Is-Purelib: false\nTag: {tag}\n"
            _write(archive, record, f"{info}/METADATA", _metadata().encode(), 0o644)
            _write(archive, record, f"{info}/WHEEL", wheel.encode(), 0o644)
            record.append(f"{info}/RECORD,,\n")
            archive.writestr(f"{info}/RECORD", "".join(record))
    return name


def build_sdist(sdist_directory, config_settings=None):
    """There is none: the library is not built by Python."""
    raise SystemExit("gccl has no source distribution: build a wheel with make wheel in the repository")


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
