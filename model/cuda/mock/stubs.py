#!/usr/bin/env python3
"""Stand-ins for every function that cudarc's bindings name: each says its name and aborts.

    stubs.py CUDARC MODULE > stubs.cpp

They are weak symbols: what the mock implements takes their place when a library is linked.
"""
import pathlib
import re
import sys

cudarc, module = pathlib.Path(sys.argv[1]), sys.argv[2]
bindings = (cudarc / "src" / module / "sys" / "mod.rs").read_text()
names = sorted(set(re.findall(r"\bfn ((?:cu|nccl|nvrtc)[A-Za-z0-9_]+)\s*\(", bindings)) - {"culib"})
if not names:
    sys.exit(f"{cudarc} names no function of {module}")
print('// Made by stubs.py.\nextern "C" {\nvoid mock_missing(const char*);')
for name in names:
    print(f'__attribute__((weak)) int {name}() {{ mock_missing("{name}"); return 999; }}')
print("}")
