"""Environments for peers whose dependencies contradict ours, made when they are first asked for.

    python benchmarks/peers/environments.py rllib spark torchrl

An environment in ``.peers/NAME`` holds only what the peer needs otherwise; all else, torch and Ray among it, it
reads from the environment of this interpreter. So both sides of a comparison compute with the same builds,
where the peer does not pin its own.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".peers"
REQUIREMENTS = {
    "rllib": ("ray[rllib]==2.60.0", "gymnasium==1.2.2"),  # the release of gymnasium that RLlib pins
    "spark": ("pyspark==4.0.1", "pandas>=2.2,<3", "pyarrow>=18"),  # the release that Java 17 is enough for
    # Its sum tree is compiled for one release of torch.
    "torchrl": ("torchrl==0.14.1", "torch==2.14.1"),
}


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment, which is made where it is missing or has other requirements.

    Raises:
        KeyError: there is no such peer.
        subprocess.CalledProcessError: it cannot be installed.
    """
    requirements = REQUIREMENTS[peer]
    folder = FOLDER / peer
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(requirements) + "\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    venv.create(folder, clear=True, with_pip=True)
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    constraints = folder / "constraints.txt"
    constraints.write_text(_constraints(requirements))
    install = ["-m", "pip", "install", "--quiet", "--no-input", "-c", str(constraints), *requirements]
    subprocess.run([str(python), *install], check=True)
    stamp.write_text(wanted)
    return python


def _constraints(requirements: tuple[str, ...]) -> str:
    """Our own, but for what the peer wants otherwise."""
    pinned = {requirement.partition("==")[0] for requirement in requirements if "==" in requirement}
    lines = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    return "".join(line for line in lines if line.partition("==")[0] not in pinned)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(python_of(name))
