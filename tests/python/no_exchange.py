"""A program on file systems that cannot exchange two names in one step, as NFS and some of Lustre.

Usage: no_exchange.py PROGRAM [ARGUMENT ...]
Becomes PROGRAM; the system answers EINVAL to its renames with RENAME_EXCHANGE, as such file systems do, and all else as ever. Linux, x86-64 or arm64.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
import tempfile

ARCHITECTURE, RENAMEAT2 = {"x86_64": (0xC000003E, 316), "aarch64": (0xC00000B7, 276)}[platform.machine()]
EXCHANGE = 2
# Of the classic packet filter: load a word, compare, answer. Offsets are those of `struct seccomp_data`.
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, WHICH, FLAGS = 0, 4, 16 + 4 * 8
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EINVAL
PROGRAM = [
    (LOAD, 0, 0, WHICH), (EQUAL, 0, 4, ARCHITECTURE),
    (LOAD, 0, 0, NUMBER), (EQUAL, 0, 2, RENAMEAT2),
    (LOAD, 0, 0, FLAGS), (EQUAL, 1, 0, EXCHANGE),
    (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE),
]
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2

code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in PROGRAM))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(PROGRAM), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
for call in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SECCOMP, FILTER, filter, 0, 0)):
    if libc.prctl(*call) != 0:
        sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
with tempfile.TemporaryDirectory() as folder:
    one, other = (os.path.join(folder, name) for name in "ab")
    os.mkdir(one), os.mkdir(other)
    refused = libc.renameat2(-100, one.encode(), -100, other.encode(), EXCHANGE) != 0 and ctypes.get_errno() == errno.EINVAL
    if not refused:
        sys.exit("the system exchanges names all the same")
os.execvp(sys.argv[1], sys.argv[1:])
