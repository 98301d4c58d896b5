"""What texts say of diseases that a graph knows, by DuckDB: mentions, triples and texts are tables of one query, read in place.

Usage: duckdb_tables.py TEXTS TRIPLES OUT
TEXTS is a Parquet file with the columns `id` and `text`, TRIPLES the folder of the stage `triples`. OUT is a Parquet file: pairs of entities that a text
names and a triple relates, with the relation and in how many texts they stand together.
"""

import sys

import duckdb

import engraft

TOGETHER = """
    with named as (select distinct texts.id, found.entity, found.name from found join texts on texts.place = found.row),
    keys as (select e.key as subject, r.key as relation, o.key as object
             from triples t join entities e on e.id = t.subject join relations r on r.id = t.relation join entities o on o.id = t.object)
    select a.name as subject, keys.relation, b.name as object, count(*) as texts
    from keys join named a on a.entity = keys.subject join named b on b.entity = keys.object and b.id = a.id
    group by all order by texts desc, subject, relation, object
"""


def main(texts, triples, out):
    with duckdb.connect() as connection:
        connection.sql("select *, row_number() over () - 1 as place from read_parquet($1)", params=[texts]).create("texts")
        for name in ("triples", "entities", "relations"):
            connection.read_parquet(f"{triples}/{name}.parquet").create(name)
        connection.register("found", engraft.Tagger(triples, min_letters=4).tag(connection.sql("select text from texts order by place")))
        connection.sql(TOGETHER).write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
