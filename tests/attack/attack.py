"""Attacks engraft and counts what gets through: `python3 tests/attack/attack.py BINARY [quick|full] [--seed N] [--only NAME]`.

The last line is `runs N, lost 0, unnoticed 0`, and the exit status 0, when nothing does. docs/reliability.md says what the campaigns do and has their figures.
"""

import argparse
import shutil
import sys
import tempfile

import damage
import hostile
import kills
import server
from harness import Bench, Engraft

# Seconds that each campaign attacks for, what it needs before not counted: about a minute in all, or more than an hour.
CAMPAIGNS = {
    "kill": (kills.at_any_time, 6, 900),
    "restore": (kills.back_and_forth, 6, 600),
    "call": (kills.at_a_call, 6, 900),
    "rot": (damage.rot, 6, 600),
    "model": (damage.models, 5, 300),
    "state": (damage.states, 8, 600),
    "ledger": (damage.ledgers, 4, 200),
    "hostile": (hostile.hostile, 6, 300),
    "server": (server.servers, 5, 600),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("length", nargs="?", choices=["quick", "full"], default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(CAMPAIGNS))
    asked = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="engraft-attack-")
    tallies = []
    try:
        bench = Bench(Engraft(asked.binary), folder, asked.seed)
        bench.make()
        print(f"undisturbed: {len(bench.files)} files in {bench.took:.1f} s; seed {asked.seed}", flush=True)
        for name, (campaign, quick, full) in CAMPAIGNS.items():
            if asked.only in (None, name):
                tallies.append(campaign(bench, quick if asked.length == "quick" else full))
                print(tallies[-1].line(), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lost, unnoticed = (sum(len(getattr(tally, kind)) for tally in tallies) for kind in ("lost", "unnoticed"))
    idle = [tally.name for tally in tallies if not tally.runs and not tally.skipped]
    if idle:
        print(f"no run at all: {', '.join(idle)}")
    print(f"runs {sum(tally.runs for tally in tallies)}, lost {lost}, unnoticed {unnoticed}")
    return 1 if lost or unnoticed or idle else 0


if __name__ == "__main__":
    sys.exit(main())
