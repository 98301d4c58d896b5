"""Readers of knowledge graphs beside the peers a user would pick instead, each in its own process, in one run.

Usage: kg.py NAME... with NAME one of
  umls    RRF to canonical triples in Parquet, engraft's `bench umls_triples` beside DuckDB; ENGRAFT_BENCH is the folder for the generated
          Metathesaurus (some 6 GB; default: a temporary folder), ENGRAFT_BENCHES that of the built program `bench`

Both sides take the same rows: names in English, not suppressed, from vocabularies with licence level 0 to 3 but not LNC; the
preferred one by MRRANK; relations with RELA between concepts that have one of 100 of the 127 semantic types; retired concepts mapped by
MRCUI; inverses of MRDOC folded into one direction, symmetric relations sorted, self-loops dropped, relations with fewer
than 10,000 triples dropped; vocabularies of a triple joined; ids by sorted key. Both write entities, relations and triples as
Parquet with zstd. The script fails unless entities (key, text, types), relations and triples (subject, relation, object, vocabularies) are equal.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runs import timed

ROOT = Path(__file__).resolve().parent.parent
BENCH = Path(os.environ.get("ENGRAFT_BENCHES", ROOT / "target/release")) / "bench"
REPEATS = int(os.environ.get("ENGRAFT_REPEATS", "3"))


def measure(command, repeats=1):
    """Of some runs the least wall seconds, the least processor seconds, and the most memory (MiB), of the process itself."""
    busy, memory, seconds = zip(*(timed(*command) for _ in range(repeats)))
    return min(seconds), min(busy), max(memory)


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" + "|--:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


# ---- UMLS ------------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "MRCONSO": "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF",
    "MRREL": "CUI1 AUI1 STYPE1 REL CUI2 AUI2 STYPE2 RELA RUI SRUI SAB SL RG DIR SUPPRESS CVF",
    "MRSTY": "CUI TUI STN STY ATUI CVF",
    "MRSAB": "VCUI RCUI VSAB RSAB SON SF SVER VSTART VEND IMETA RMETA SLC SCC SRL TFR CFR CXTY TTYL ATNL LAT CENC CURVER SABIN SSN SCIT",
    "MRRANK": "RANK SAB TTY SUPPRESS",
    "MRDOC": "DOCKEY VALUE TYPE EXPL",
    "MRCUI": "CUI1 VER REL RELA MAPREASON CUI2 MAPIN",
}

SQL = """
-- Vocabularies of level 0 to 3.
CREATE TEMP TABLE admitted AS SELECT RSAB AS sab FROM MRSAB WHERE CURVER = 'Y' AND SRL::INT <= 3 AND RSAB <> 'LNC';

-- The preferred name of each concept: one number for rank and flags, ties by text.
CREATE TEMP TABLE name AS
WITH ranked AS (
    SELECT substr(CUI, 2)::INT AS cui, STR AS text,
           (100000 - coalesce(RANK::INT, -1)) * 8 + (TS <> 'P')::INT * 4 + (STT <> 'PF')::INT * 2 + (ISPREF <> 'Y')::INT AS worse
    FROM MRCONSO SEMI JOIN admitted ON MRCONSO.SAB = admitted.sab LEFT JOIN MRRANK USING (SAB, TTY, SUPPRESS)
    WHERE LAT = 'ENG' AND MRCONSO.SUPPRESS = 'N'
)
SELECT cui, min({'worse': worse, 'text': text}).text AS text FROM ranked GROUP BY cui;

CREATE TEMP TABLE type AS SELECT DISTINCT substr(CUI, 2)::INT AS cui, TUI AS code, STY AS name FROM MRSTY;

-- Where a concept of MRREL leads: to itself, or from a retired one to the one that is the same.
CREATE TEMP TABLE concept AS
WITH typed AS (
    SELECT cui FROM name SEMI JOIN (SELECT cui FROM type WHERE substr(code, 2)::INT BETWEEN 1 AND 100) AS wanted USING (cui)
), same AS (
    SELECT substr(CUI1, 2)::INT AS old, min(substr(CUI2, 2)::INT) AS cui FROM MRCUI WHERE REL = 'SY'
    GROUP BY old HAVING count(DISTINCT CUI2) = 1
)
SELECT cui AS met, cui FROM typed
UNION ALL
SELECT old, cui FROM same SEMI JOIN typed USING (cui) ANTI JOIN name ON old = name.cui;

-- Of two inverses the one stays that is not called inverse_, is active, starts from what has, is first in order.
CREATE TEMP TABLE direction AS
WITH pair AS (SELECT DISTINCT VALUE AS rela, EXPL AS inverse FROM MRDOC WHERE DOCKEY = 'RELA' AND TYPE = 'rela_inverse'),
ranked AS (
    SELECT rela, inverse,
           (rela LIKE 'inverse\\_%' ESCAPE '\\', regexp_matches(rela, '_by$|_by_|_be_|^be_'), regexp_matches(rela, '_of$|_from$'), rela) AS rank,
           (inverse LIKE 'inverse\\_%' ESCAPE '\\', regexp_matches(inverse, '_by$|_by_|_be_|^be_'), regexp_matches(inverse, '_of$|_from$'), inverse) AS other
    FROM pair
)
SELECT rela, rela = inverse AS is_symmetric, other < rank AS is_turned, CASE WHEN other < rank THEN inverse ELSE rela END AS relation
FROM ranked;

CREATE TEMP TABLE statement AS
WITH row AS (
    SELECT s.cui AS subject, o.cui AS object, RELA AS rela, MRREL.SAB AS vocabulary
    FROM MRREL SEMI JOIN admitted ON MRREL.SAB = admitted.sab
    JOIN concept AS s ON s.met = substr(CUI2, 2)::INT JOIN concept AS o ON o.met = substr(CUI1, 2)::INT
    WHERE SUPPRESS = 'N' AND RELA <> ''
), turned AS (
    SELECT coalesce(relation, row.rela) AS relation, vocabulary, subject, object,
           coalesce(is_turned OR (is_symmetric AND subject > object), false) AS turns
    FROM row LEFT JOIN direction USING (rela) WHERE subject <> object
)
SELECT DISTINCT CASE WHEN turns THEN object ELSE subject END AS subject, relation,
       CASE WHEN turns THEN subject ELSE object END AS object, vocabulary
FROM turned;

CREATE TEMP TABLE triple AS
SELECT subject, relation, object, list(vocabulary ORDER BY vocabulary) AS vocabularies FROM statement GROUP BY ALL;
DROP TABLE statement;

CREATE TEMP TABLE relation AS
SELECT (row_number() OVER (ORDER BY relation) - 1)::UINTEGER AS id, relation AS key
FROM (SELECT relation FROM triple GROUP BY relation HAVING count(*) >= 10000);

CREATE TEMP TABLE entity AS
SELECT (row_number() OVER (ORDER BY cui) - 1)::UINTEGER AS id, cui FROM (
    SELECT subject AS cui FROM triple SEMI JOIN relation ON relation = key
    UNION SELECT object FROM triple SEMI JOIN relation ON relation = key
);

COPY (
    SELECT id, format('umls:C{:07d}', cui) AS key, text, types FROM entity JOIN name USING (cui)
    LEFT JOIN (SELECT cui, list({'code': code, 'name': name} ORDER BY code, name) AS types FROM type SEMI JOIN entity USING (cui) GROUP BY cui) USING (cui)
    ORDER BY id
) TO '$OUT/entities.parquet' (FORMAT parquet, COMPRESSION zstd);
COPY (SELECT * FROM relation ORDER BY id) TO '$OUT/relations.parquet' (FORMAT parquet, COMPRESSION zstd);
COPY (
    SELECT s.id AS subject, relation.id AS relation, o.id AS object, vocabularies
    FROM triple JOIN relation ON relation = key JOIN entity AS s ON s.cui = subject JOIN entity AS o ON o.cui = object
    ORDER BY ALL
) TO '$OUT/triples.parquet' (FORMAT parquet, COMPRESSION zstd);
"""


def duckdb_umls(data, out, limit):
    """What the peer's process does."""
    import duckdb

    out.mkdir(parents=True, exist_ok=True)
    db = duckdb.connect(config={"threads": 2, "temp_directory": str(out / "tmp")})
    if limit:
        db.execute(f"SET memory_limit = '{limit}'")
    for name, columns in COLUMNS.items():
        types = ", ".join(f"'{column}': 'VARCHAR'" for column in [*columns.split(), "END_OF_LINE"])
        db.execute(f"""CREATE VIEW {name} AS SELECT * FROM read_csv('{data}/{name}.RRF', delim = '|', quote = '', escape = '',
                       header = false, auto_detect = false, nullstr = '\\N', columns = {{{types}}})""")
    for statement in SQL.replace("$OUT", str(out)).split(";\n"):
        if statement.strip():
            start = time.perf_counter()
            db.execute(statement)
            if os.environ.get("ENGRAFT_TRACE"):
                print(f"{time.perf_counter() - start:7.2f} s  {statement.strip().splitlines()[-1][:80]}", file=sys.stderr)


def same_umls(ours, theirs):
    """The number of triples; ends the script if anything differs."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def lists(column):
        column = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
        return column.value_lengths(), column.flatten()

    def check(what, one, other):
        if not one.equals(other.cast(one.type)):
            sys.exit(f"{what}: engraft and DuckDB differ")

    def read(folder, name, columns):
        return pq.read_table(folder / f"{name}.parquet", columns=columns)

    for name, columns in {"entities": ["key", "text"], "relations": ["key"], "triples": ["subject", "relation", "object"]}.items():
        one, other = read(ours, name, columns), read(theirs, name, columns)
        for column in columns:
            check(f"{name}.{column}", one[column].combine_chunks(), other[column].combine_chunks())
    (counts, types), (other_counts, other_types) = (lists(read(folder, "entities", ["types"])["types"]) for folder in (ours, theirs))
    check("number of types", counts, pc.fill_null(other_counts, 0))
    for field in ("code", "name"):
        check(f"types.{field}", types.field(field), other_types.field(field))
    (counts, origins), = [lists(read(ours, "triples", ["origins"])["origins"])]
    (other_counts, other), = [lists(read(theirs, "triples", ["vocabularies"])["vocabularies"])]
    check("number of vocabularies", counts, other_counts)
    check("vocabularies", origins.field("vocabulary"), other)
    return len(counts)


def same(ours, theirs):
    """Compares in a process of its own: a process begins with its parent's peak, so the parent must stay small."""
    return int(subprocess.run([sys.executable, __file__, "same-umls", ours, theirs], check=True, stdout=subprocess.PIPE).stdout)


def umls():
    with tempfile.TemporaryDirectory() as temporary:
        bench = Path(os.environ.get("ENGRAFT_BENCH", temporary))
        figures = {}
        for millions in (5, 10, 20):
            data = bench / str(millions)
            if not (data / "MRDOC.RRF").exists():
                subprocess.run([BENCH, "metathesaurus", data, "4000000", f"{millions}000000"], check=True, stdout=subprocess.DEVNULL)
            ours, theirs = bench / "ours", bench / "theirs"
            repeats = REPEATS if millions == 20 else 1
            figures["engraft", millions] = measure([BENCH, "umls_triples", data, ours, "1000000"], repeats)
            figures["DuckDB", millions] = measure([sys.executable, __file__, "duckdb-umls", data, theirs, ""], repeats)
            triples = same(ours, theirs)
        figures["DuckDB, memory_limit 4GB", 20] = measure([sys.executable, __file__, "duckdb-umls", data, theirs, "4GB"])
        same(ours, theirs)
        rows = sum(1 for _ in open(data / "MRREL.RRF", "rb"))
        size = sum(file.stat().st_size for file in data.glob("*.RRF"))
    print(f"UMLS: {rows:,} rows of MRREL at most, {size / 1e9:.2f} GB; {triples:,} triples, equal on both sides\n")
    head = ["", "MRREL rows", "seconds", "processor seconds", "peak MiB", "ratio of seconds", "of processor seconds", "of peak"]
    table(head, [
        [who, f"{millions} M", f"{seconds:.1f}", f"{busy:.1f}", f"{memory:,.0f}",
         *(f"{one / other:.2f}" for one, other in zip((seconds, busy, memory), figures["DuckDB", millions]))]
        for (who, millions), (seconds, busy, memory) in figures.items()
    ])


BENCHES = {"umls": umls}

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["duckdb-umls", data, out, limit]:
            duckdb_umls(Path(data), Path(out), limit)
        case ["same-umls", ours, theirs]:
            print(same_umls(Path(ours), Path(theirs)))
        case [_, *_] as names if all(name in BENCHES for name in names):
            for name in names:
                BENCHES[name]()
        case _:
            sys.exit(__doc__)
