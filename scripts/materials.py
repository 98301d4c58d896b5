"""What a program is made of: the licences of all that is compiled into it, and a bill of materials (CycloneDX 1.6).

Usage: materials.py --package NAME --licences FILE --bill FILE [--wheel WHEEL]
Reads `cargo metadata`, `cargo tree` and Cargo.lock of this folder; the texts are those that the packages bring, each once. Ends with status 1 if a package
neither says its licence nor brings a text. A finished WHEEL gets both files and engraft's own licences.
"""

import argparse
import base64
import csv
import hashlib
import io
import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--package", required=True)
parser.add_argument("--licences", type=Path, required=True)
parser.add_argument("--bill", type=Path, required=True)
parser.add_argument("--wheel", type=Path)
options = parser.parse_args()

host = next(line.split()[1] for line in subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines() if line.startswith("host"))
command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = next(id for id, package in packages.items() if package["name"] == options.package and id in metadata["workspace_members"])

# What is compiled into it: dependencies that are neither for tests nor for building alone. `cargo metadata` has the features that all packages of the workspace
# ask for together, `cargo tree` those of this one.
tree = ["cargo", "tree", "--locked", "--package", options.package, "--edges", "normal", "--prefix", "none", "--format", "{p}"]
compiled = {tuple(line.split()[:2]) for line in subprocess.run(tree, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines() if line}
inside, left = set(), [root]
while left:
    id = left.pop()
    if id not in inside and (packages[id]["name"], f"v{packages[id]['version']}") in compiled:
        inside.add(id)
        left += [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
if lost := compiled - {(packages[id]["name"], f"v{packages[id]['version']}") for id in inside}:
    sys.exit(f"`cargo metadata` does not know how {', '.join(name for name, _ in sorted(lost))} come into {options.package}")
others = sorted((packages[id] for id in inside if packages[id]["source"]), key=lambda package: (package["name"], package["version"]))

NAMES = ("license", "licence", "copying", "notice", "unlicense")
# Of what is not compiled, or a licence that zstd-sys does not choose of zstd's two.
LEFT_OUT = {("petgraph", "assets/images/LICENSE.md"), ("zstd-sys", "zstd/COPYING")}
heads, bodies, silent = [], {}, []
for package in others:
    folder = Path(package["manifest_path"]).parent
    # In folders below it: of C code, tables and the like that the package has from others.
    texts = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name.lower().startswith(NAMES)]
    texts = [path for path in texts if (package["name"], path.relative_to(folder).as_posix()) not in LEFT_OUT]
    if not package["license"] and not texts:
        silent.append(package["name"])
    name = f"{package['name']} {package['version']}"
    heads.append(f"{name}: {package['license'] or 'see below'}  {package['repository'] or ''}".rstrip())
    for path in texts:
        # The same text of many packages stands once.
        of = name if path.parent == folder else f"{name} ({path.relative_to(folder).as_posix()})"
        bodies.setdefault(path.read_text(encoding="utf-8", errors="replace").strip(), []).append(of)
if silent:
    sys.exit(f"no licence is known of {', '.join(silent)}")
rule = "\n\n" + "=" * 100 + "\n\n"
title = f"What is compiled into {options.package}, and under which licences.\n\n"
sections = [f"Of {', '.join(dict.fromkeys(of))}:\n\n{text}" for text, of in bodies.items()]
options.licences.write_text(title + rule.join(["\n".join(heads), *sections]) + "\n", encoding="utf-8")

locked = {(package["name"], package["version"]): package.get("checksum") for package in tomllib.loads(Path("Cargo.lock").read_text())["package"]}


def component(package, kind):
    name, version = package["name"], package["version"]
    value = {"type": kind, "bom-ref": f"pkg:cargo/{name}@{version}", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
    if package["license"]:
        value["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := locked.get((name, version)):
        value["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return value


def reference(id):
    return f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"


needs = {reference(id): sorted(reference(dep["pkg"]) for dep in nodes[id]["deps"] if dep["pkg"] in inside) for id in inside}
bill = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {"component": component(packages[root], "application")},
    "components": [component(packages[id], "library") for id in sorted(inside - {root}, key=reference)],
    "dependencies": [{"ref": ref, "dependsOn": needs[ref]} for ref in sorted(needs)],
}
options.bill.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


def put_into(wheel, licences, bill):
    """Licences and bill into a wheel's .dist-info (PEP 639, PEP 770), in place of those that maturin may have put there: its bill has what other packages of the
    workspace ask for, folders of this machine and the time."""
    with zipfile.ZipFile(wheel) as old:
        entries = [(entry, old.read(entry)) for entry in old.infolist()]
    [record] = [entry for entry, _ in entries if entry.filename.endswith(".dist-info/RECORD")]
    info = record.filename.removesuffix("RECORD")

    def fresh(name):
        entry = zipfile.ZipInfo(info + name, record.date_time)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
        return entry

    def named(metadata):
        head, blank, body = metadata.decode().partition("\n\n")
        lines = [line for line in head.split("\n") if not line.startswith("License-File:")]
        return ("\n".join(lines + [f"License-File: {path.name}" for path in licences]) + blank + body).encode()

    replaced = (info + "licenses/", info + "sboms/", record.filename)
    entries = [(entry, data) for entry, data in entries if not entry.filename.startswith(replaced)]
    entries = [(entry, named(data) if entry.filename == info + "METADATA" else data) for entry, data in entries]
    entries += [(fresh(f"licenses/{path.name}"), path.read_bytes()) for path in licences]
    entries.append((fresh(f"sboms/{bill.name}"), bill.read_bytes()))
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    for entry, data in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        writer.writerow([entry.filename, f"sha256={digest}", len(data)])
    writer.writerow([record.filename, "", ""])
    entries.append((fresh("RECORD"), rows.getvalue().encode()))
    whole = wheel.with_name(f"{wheel.name}.part")
    with zipfile.ZipFile(whole, "w") as new:
        for entry, data in entries:
            new.writestr(entry, data, compresslevel=9)
    whole.replace(wheel)


if options.wheel:
    put_into(options.wheel, [options.licences, Path("LICENSE-APACHE"), Path("LICENSE-MIT")], options.bill)
print(f"{options.package}: {len(others)} packages of others")
