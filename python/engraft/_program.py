"""Where the program `engraft` is: what the wheel engraft-cli brings, or another one."""

import functools
import os
import shutil
import subprocess
import sys
import sysconfig

from ._engraft import __version__

VARIABLE = "ENGRAFT_BIN"
"""Names another program, such as one with CUDA."""


def found() -> str:
    """The path of the program: what ENGRAFT_BIN names, else that of this environment, else the first on PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise FileNotFoundError(f"{VARIABLE} is {named}, which is no program")
        return named
    own = os.path.join(sysconfig.get_path("scripts"), "engraft")
    path = own if os.access(own, os.X_OK) else shutil.which("engraft")
    if path is None:
        raise FileNotFoundError(f"the program engraft is not here: install the wheel engraft_cli of the same release (scripts/release.sh makes it), or let {VARIABLE} name it")
    return path


@functools.cache
def program() -> str:
    """The same, once it is known to be of this package's version."""
    path = found()
    said = subprocess.run([path, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    if said[:2] != ["engraft", __version__]:
        raise RuntimeError(f"{path} is {' '.join(said[:2]) or 'no engraft'}, and this package is engraft {__version__}: install both of one version")
    return path


def main() -> None:
    """`python -m engraft`: the program, with the same arguments, in place of this process."""
    try:
        path = found()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    os.execv(path, ["engraft", *sys.argv[1:]])
