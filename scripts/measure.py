"""Counts what the house is measured by: `measure.py NAME=FOLDER ...` prints a Markdown table with a column for each.

Production is all Rust but tests, test helpers, benches and examples. A file's tests begin at its module `tests`. Imports between files are the paths that begin
with `crate::` or `super::` in `use` statements; a circle is a strongly connected component of more than one file.
"""

import os
import re
import sys

SKIPPED = {"target", "out", "tests", "benches", "examples", "fixtures"}
TESTS = re.compile(r"\n\s*#\[cfg\(test\)\]\n(?:\s*#\[[^\n]*\n)*\s*(?:pub(?:\([a-z]+\))? )?mod \w+ \{")
PUBLIC = re.compile(r"^pub (?:async |unsafe |const )*(fn|struct|enum|trait|const|static|mod|type|use)\b")
FUNCTION = re.compile(r"\bfn \w+(?:<[^(]*>)?\(")


def production(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for name in sorted(files):
            if name.endswith(".rs") and name not in ("tests.rs", "testing.rs"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text = file.read()
                if "#![cfg(test)]" not in text:
                    yield os.path.relpath(os.path.join(folder, name), root), TESTS.split(text)[0]


def arguments(text):
    """The argument lists of all functions."""
    for begin in (found.end() for found in FUNCTION.finditer(text)):
        depth, at = 1, begin
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield text[begin : at - 1]


def bundles(text):
    """Functions that take a tuple apart in their arguments: `(one, other): (One, Other)`."""
    return sum(bool(re.search(r"(?:^|,)\s*\([^()]*\)\s*:", given)) for given in arguments(text))


def module(path):
    """A file's crate folder and the parts of its module."""
    crate, _, inside = path.partition("/src/")
    parts = [part for part in inside[:-3].split("/") if part not in ("lib", "main")]
    return crate, parts


def imports(files):
    """By file: the files of its crate that it names."""
    known = {(crate, "::".join(parts)): path for path, (crate, parts) in ((p, module(p)) for p in files)}

    def find(crate, parts):
        while parts:
            if (crate, "::".join(parts)) in known:
                return known[crate, "::".join(parts)]
            parts = parts[:-1]
        return None

    named = {}
    for path, text in files.items():
        crate, own = module(path)
        found = set()
        for use in re.findall(r"^use ([^;]+);", text, re.M):
            for full in flat(re.sub(r"\s+", "", use)):
                parts = full.split("::")
                if parts[0] == "crate":
                    found.add(find(crate, parts[1:]))
                elif parts[0] in ("super", "self"):
                    base = list(own)
                    while parts and parts[0] in ("super", "self"):
                        base = base[:-1] if parts[0] == "super" else base
                        parts = parts[1:]
                    found.add(find(crate, base + parts))
        named[path] = found - {None, path}
    return named


def flat(use):
    """`a::{b,c::d}` as `a::b` and `a::c::d`."""
    if "{" not in use:
        return [use.split(" as ")[0]]
    head, _, rest = use.partition("{")
    inner, depth, parts, part = rest[: rest.rindex("}")], 0, [], ""
    for c in inner:
        depth += {"{": 1, "}": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [path for one in [*parts, part] if one for path in flat(head + one)]


def circles(named):
    """Sizes of strongly connected components (Tarjan), the largest first."""
    index, low, stack, on, sizes, counter = {}, {}, [], set(), [], [0]

    def visit(root):
        work = [(root, iter(sorted(named[root])))]
        index[root] = low[root] = counter[0]
        counter[0] += 1
        stack.append(root)
        on.add(root)
        while work:
            at, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = counter[0]
                    counter[0] += 1
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(named[other]))))
                    break
                if other in on:
                    low[at] = min(low[at], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    size = 0
                    while True:
                        other = stack.pop()
                        on.discard(other)
                        size += 1
                        if other == at:
                            break
                    sizes.append(size)

    for path in named:
        if path not in index:
            visit(path)
    return sorted((size for size in sizes if size > 1), reverse=True)


def test_binaries(root):
    """Linked binaries with tests: one for each library or program with tests in it, one for each file or entry of `tests/`."""
    found = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ("target", "out") and not f.startswith(".")]
        if "Cargo.toml" not in files:
            continue
        with open(os.path.join(folder, "Cargo.toml"), encoding="utf-8") as file:
            manifest = file.read()
        if "[package]" not in manifest:
            continue
        found += sum(os.path.exists(os.path.join(folder, "src", name)) for name in ("lib.rs", "main.rs"))
        entries = re.findall(r"\[\[test\]\][^\[]*", manifest)
        tests = os.path.join(folder, "tests")
        if "autotests = false" in manifest:
            found += sum("test = false" not in entry for entry in entries)
        elif os.path.isdir(tests):
            inside = os.listdir(tests)
            found += sum(name.endswith(".rs") or os.path.exists(os.path.join(tests, name, "main.rs")) for name in inside)
    return found


def measured(root):
    files = dict(production(root))
    code = docs = why = public = errors = tuples = 0
    for text in files.values():
        for line in map(str.strip, text.split("\n")):
            docs += line.startswith(("///", "//!"))
            why += line.startswith("//") and not line.startswith(("///", "//!"))
            code += bool(line) and not line.startswith("//")
            public += bool(PUBLIC.match(line))
        errors += len(re.findall(r"#\[derive\([^\]]*\bError\b[^\]]*\)\]", text))
        tuples += bundles(text)
    named = circles(imports(files))
    return {
        "files of production": f"{len(files):,}",
        "lines of code": f"{code:,}",
        "lines of docs": f"{docs:,}",
        "public items": f"{public:,} ({1000 * public / code:.0f} per 1,000)",
        "error types": f"{errors:,}",
        "functions that take tuples apart": f"{tuples:,}",
        "circles of files": f"{len(named)}, the largest of {named[0] if named else 0}; {sum(size > 3 for size in named)} over 3",
        "comments that say why": f"{why:,} ({100 * why / code:.1f} % of code)",
        "test binaries": f"{test_binaries(root)}",
    }


def main():
    columns = [given.split("=", 1) for given in sys.argv[1:]]
    tables = [measured(root) for _, root in columns]
    print("| | " + " | ".join(name for name, _ in columns) + " |")
    print("|---|" + "--:|" * len(columns))
    for what in tables[0]:
        print(f"| {what} | " + " | ".join(table[what] for table in tables) + " |")


if __name__ == "__main__":
    main()
