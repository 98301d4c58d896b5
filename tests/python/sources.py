"""Files of every source in its publisher's layout, with what a count by itself finds in them.

Usage: sources.py FOLDER [FILE ...]
Writes files with random contents, a folder for each source, and prints, as JSON lines, the source's table of a config, how many triples and how many of their
ends there are, and how many rows are dropped for which reason. FILE is one that others have published, which is counted as well: an ontology in OBO, the tabular
list of ICD-10-CM in XML, an OBO or a KGX graph in JSON, or the edges of one in JSON lines, whose nodes lie beside them. Reads nothing of engraft's.
"""

import gzip
import json
import random
import sys
from pathlib import Path
from xml.etree import ElementTree

out = Path(sys.argv[1])
THINGS, ROWS = 400, 3000
TAB, COMMA = "\t", ","


class Graph:
    """Things, of which some are out of use, and rows between them, of which some are."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.old = set(chance.sample(range(THINGS), THINGS // 10))
        # From a later thing to an earlier one: no row is the inverse of another, and none goes in circles.
        pairs = [sorted(chance.sample(range(THINGS), 2), reverse=True) for _ in range(ROWS)]
        self.rows = [(one, chance.choice(("is_a", "site")), other, chance.random() < 0.1) for one, other in pairs]

    def loose(self, one, other):
        return one in self.old or other in self.old

    def kept(self):
        """The different rows in use between things in use."""
        return {(one, relation, other) for one, relation, other, over in self.rows if not over and not self.loose(one, other)}

    def over_rows(self):
        """How many rows are out of use."""
        return sum(over for *_, over in self.rows)

    def loose_rows(self):
        """How many of the others are of things that are."""
        return sum(self.loose(one, other) for one, _, other, over in self.rows if not over)


def put(path, text):
    path = out / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def table(header, rows, between=TAB):
    return "".join(between.join(map(str, row)) + "\n" for row in [header, *rows])


def tell(source, config, kept, **dropped):
    ends = {end for one, _, other in kept for end in (one, other)}
    print(json.dumps({"source": source, "config": config, "triples": len(kept), "entities": len(ends), "dropped": dropped}))


def name(number):
    return f"thing {number}, of a kind" if number % 7 == 0 else f"thing {number}"


def quoted(text):
    return f'"{text}"' if "," in text else text


def snomed(kind):
    graph = Graph(f"snomed {kind}")
    types = {"is_a": 116680003, "site": 363698007}
    when, own = "20260101", 900000000000207008
    id = lambda number: 100_000_000 + number
    concepts = [(id(number), when, int(number not in graph.old), own, 1) for number in range(THINGS)]
    concepts += [(of, when, 1, own, 1) for of in types.values()]
    named = [*((id(number), f"{name(number)} (finding)") for number in range(THINGS)), (116680003, "Is a (attribute)"), (363698007, "Finding site (attribute)")]
    names = [(10_000 + at, when, 1, own, of, "en", 900000000000003001, term, 900000000000448009) for at, (of, term) in enumerate(named)]
    row = lambda at, row, when, active: (50_000 + at, when, active, own, id(row[0]), id(row[2]), 0, types[row[1]], 900000000000011006, 900000000000451002)
    rows = [row(at, of, when, int(not of[3])) for at, of in enumerate(graph.rows)]
    if kind == "Full":
        # Earlier, each concept and each row was as it no longer is.
        concepts += [(id(number), "20200101", int(number in graph.old), own, 1) for number in range(THINGS)]
        rows += [row(at, of, "20200101", int(of[3])) for at, of in enumerate(graph.rows)]
    for file, header, of in (
        (f"Terminology/sct2_Concept_{kind}", "id effectiveTime active moduleId definitionStatusId", concepts),
        (f"Terminology/sct2_Description_{kind}-en", "id effectiveTime active moduleId conceptId languageCode typeId term caseSignificanceId", names),
        (f"Terminology/sct2_Relationship_{kind}", "id effectiveTime active moduleId sourceId destinationId relationshipGroup typeId characteristicTypeId modifierId", rows),
        (f"Refset/Content/der2_cRefset_Association{kind}", "id effectiveTime active moduleId refsetId referencedComponentId targetComponentId", []),
    ):
        put(f"snomed/{kind}/{file}_INT_20260101.txt", table(header.split(), of))
    earlier = {"superseded": ROWS} if kind == "Full" else {}
    tell(f"snomed {kind}", f'[sources.snomed]\npath = "snomed/{kind}"', graph.kept(), inactive=graph.over_rows(), obsolete=graph.loose_rows(), **earlier)


def omop():
    graph = Graph("omop")
    dates = ("19700101", "20991231")
    concepts = [(number + 1, name(number), "Condition", "SNOMED", "Finding", "S", 500 + number, *dates, "D" if number in graph.old else "") for number in range(THINGS)]
    relations = {"is_a": ("Is a", "Subsumes"), "site": ("Has finding site", "Finding site of")}
    rows = []
    for one, relation, other, over in graph.rows:
        there, back = relations[relation]
        rows += [(one + 1, other + 1, there, *dates, "D" if over else ""), (other + 1, one + 1, back, *dates, "D" if over else "")]
    put("omop/CONCEPT.csv", table("concept_id concept_name domain_id vocabulary_id concept_class_id standard_concept concept_code valid_start_date valid_end_date invalid_reason".split(), concepts))
    put("omop/CONCEPT_RELATIONSHIP.csv", table("concept_id_1 concept_id_2 relationship_id valid_start_date valid_end_date invalid_reason".split(), rows))
    put("omop/CONCEPT_SYNONYM.csv", table("concept_id concept_synonym_name language_concept_id".split(), [(1, "another name", 4180186)]))
    both = [pair for of in relations.values() for pair in (of, of[::-1])]
    put("omop/RELATIONSHIP.csv", table("relationship_id relationship_name is_hierarchical defines_ancestry reverse_relationship_id relationship_concept_id".split(), [(of, of, 0, 0, back, 1) for of, back in both]))
    tell("omop", '[sources.omop]\npath = "omop"', graph.kept(), invalid=2 * graph.over_rows(), obsolete=2 * graph.loose_rows())


def rxnorm():
    graph = Graph("rxnorm")
    names = [f"{number + 1}|ENG||||||{number}|{number}|{number}||RXNORM|IN|{number}|{name(number)}||{'O' if number in graph.old else 'N'}|4096|\n" for number in range(THINGS)]
    relations = {"is_a": ("isa", "inverse_isa"), "site": ("has_part", "part_of")}
    rows = []
    for one, relation, other, over in graph.rows:
        there, back = relations[relation]
        # What the second is to the first.
        for subject, rela, object in ((one, there, other), (other, back, one)):
            rows.append(f"{object + 1}||CUI|RO|{subject + 1}||CUI|{rela}|1||RXNORM|RXNORM|||{'O' if over else 'N'}|4096|\n")
    both = [pair for of in relations.values() for pair in (of, of[::-1])]
    put("rxnorm/RXNCONSO.RRF", "".join(names))
    put("rxnorm/RXNREL.RRF", "".join(rows))
    put("rxnorm/RXNDOC.RRF", "".join(f"RELA|{of}|rela_inverse|{back}|\n" for of, back in both))
    put("rxnorm/RXNSTY.RRF", "1|T109|A1.4|Organic Chemical|||\n")
    tell("rxnorm", '[sources.rxnorm]\npath = "rxnorm"', graph.kept(), suppressed=2 * graph.over_rows(), obsolete=2 * graph.loose_rows())


def icd10cm():
    chance, text, kept = random.Random("icd"), ["<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<ICD10CM.tabular>\n<version>2026</version>\n"], set()
    for chapter in range(1, 5):
        letter = "ABCD"[chapter - 1]
        text.append(f"<chapter><name>{chapter}</name><desc>Chapter {chapter} (00-99)</desc>")
        for block in range(0, 90, 10):
            section = f"{letter}{block:02}-{letter}{block + 9:02}"
            text.append(f'<section id="{section}"><desc>Block {section} ({section})</desc>')
            kept.add((section, "isa", str(chapter)))
            for category in range(block, block + chance.randrange(2, 10)):
                code = f"{letter}{category:02}"
                text.append(f"<diag><name>{code}</name><desc>Category {code}</desc>")
                kept.add((code, "isa", section))
                for place in range(chance.randrange(5)):
                    text.append(f"<diag><name>{code}.{place}</name><desc>Code {code}.{place} &amp; more</desc><excludes1><note>x (A01)</note></excludes1></diag>")
                    kept.add((f"{code}.{place}", "isa", code))
                text.append("</diag>\n")
            text.append("</section>")
        text.append("</chapter>\n")
    put("icd10cm.xml", "".join([*text, "</ICD10CM.tabular>\n"]))
    tell("icd10cm", '[sources.icd10cm]\npath = "icd10cm.xml"', kept)


def ontologies():
    graph = Graph("obo")
    # Nothing says of a row of OBO that it is over: it is not there.
    rows = {number: [] for number in range(THINGS)}
    for one, relation, other, over in graph.rows:
        if not over:
            rows[one].append((relation, other))
    terms = ["format-version: 1.2\nontology: x\n\n"]
    for number in range(THINGS):
        lines = [f"is_a: X:{other}" if relation == "is_a" else f"relationship: site X:{other} ! {name(other)}" for relation, other in rows[number]]
        lines += ["is_obsolete: true"] if number in graph.old else []
        terms.append("\n".join(["[Term]", f"id: X:{number}", f"name: {name(number)}", *lines]) + "\n\n")
    put("x.obo", "".join([*terms, "[Typedef]\nid: site\nname: site\n"]))
    tell("obo", '[sources.obo]\npath = "x.obo"', graph.kept(), obsolete=graph.loose_rows())
    iri = "http://purl.obolibrary.org/obo/"
    nodes = [{"id": f"{iri}X_{number}", "lbl": name(number), "type": "CLASS"} | ({"meta": {"deprecated": True}} if number in graph.old else {}) for number in range(THINGS)]
    nodes.append({"id": f"{iri}x#site", "lbl": "site", "type": "PROPERTY", "propertyType": "OBJECT"})
    edges = [{"sub": f"{iri}X_{one}", "pred": "is_a" if relation == "is_a" else f"{iri}x#site", "obj": f"{iri}X_{other}"} for one in rows for relation, other in rows[one]]
    put("x.json", json.dumps({"graphs": [{"id": f"{iri}x.json", "nodes": nodes, "edges": edges}]}))
    tell("obo graphs", '[sources.ontologies.x]\npath = "x.json"', graph.kept(), obsolete=graph.loose_rows())


def rdf():
    graph = Graph("rdf")
    of = lambda number: f"<http://www.wikidata.org/entity/Q{number + 1}>"
    relations = {"is_a": "P279", "site": "P927"}
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    # Things out of use have no name here.
    lines = [f'{of(number)} {label} "{name(number)}"@en .\n' for number in range(THINGS) if number not in graph.old]
    lines += [f'<http://www.wikidata.org/entity/{property}> {label} "{relation}"@en .\n' for relation, property in relations.items()]
    lines += [f"{of(one)} <http://www.wikidata.org/prop/direct/{relations[relation]}> {of(other)} .\n" for one, relation, other, over in graph.rows if not over]
    put("x.nt.gz", "".join(lines))
    tell("rdf", '[sources.rdf.x]\nfiles = ["x.nt.gz"]', graph.kept(), no_name=graph.loose_rows())
    # The same as Turtle writes it: prefixes, predicates and objects of one subject together, texts over several lines.
    short = lambda number: f"wd:Q{number + 1}"
    blocks = [f'wd:{property} rdfs:label """{relation}"""@en .\n' for relation, property in relations.items()]
    for number in range(THINGS):
        objects = {relation: [short(other) for one, of, other, over in graph.rows if not over and (one, of) == (number, relation)] for relation in relations}
        said = [f"wdt:{relations[relation]} {', '.join(others)}" for relation, others in objects.items() if others]
        said += [f'rdfs:label "{name(number)}"@en, "nom {number}"@fr'] if number not in graph.old else []
        blocks += [f"{short(number)} {' ;  # more'.join([said[0], *(chr(10) + '    ' + more for more in said[1:])])} .\n"] if said else []
    prefixes = [("wd", "http://www.wikidata.org/entity/"), ("wdt", "http://www.wikidata.org/prop/direct/"), ("rdfs", "http://www.w3.org/2000/01/rdf-schema#")]
    put("x.ttl", "".join([*(f"@prefix {short}: <{of}> .\n" for short, of in prefixes), *blocks]))
    tell("turtle", '[sources.rdf.x]\nfiles = ["x.ttl"]', graph.kept(), no_name=graph.loose_rows())


def primekg():
    graph = Graph("edges")
    end = lambda number: (number, 1000 + number, "disease", quoted(name(number)), "MONDO")
    rows = [(relation, relation, *end(one), *end(other)) for one, relation, other, over in graph.rows]
    header = "relation display_relation x_index x_id x_type x_name x_source y_index y_id y_type y_name y_source".split()
    put("kg.csv", table(header, rows, COMMA) + "\n")
    side = lambda x: f'{{ id = "{x}_id", name = "{x}_name", type = "{x}_type", namespace = "{x}_source" }}'
    ends = f'subject = {side("x")}\nobject = {side("y")}'
    kept = {(one, relation, other) for one, relation, other, _ in graph.rows}
    tell("edges", f'[sources.edges.prime]\nfiles = ["kg.csv"]\nrelation.column = "relation"\n{ends}', kept, blank_lines=1)


def edge_records():
    graph = Graph("edge records")
    lines = lambda of: "".join(json.dumps(record) + "\n" for record in of)
    # Who has nothing to say of validity does not say it.
    edges = [{"from": one, "says": relation, "to": other} | ({"active": False} if over else {}) for one, relation, other, over in graph.rows]
    nodes = [{"id": number, "name": [name(number), f"other {number}"], "kind": ["a", "b"]} | ({"active": False} if number in graph.old else {}) for number in range(THINGS)]
    put("records/edges.jsonl.gz", lines(edges) + "\n")
    put("records/nodes.jsonl", lines(nodes))
    put("records/graph.json", json.dumps({"nodes": nodes, "edges": edges}))
    for files, beside, blank in (("edges.jsonl.gz", "nodes.jsonl", {"blank_lines": 1}), ("graph.json", "graph.json", {})):
        ends = 'subject.id = "from"\nobject.id = "to"\nrelation.column = "says"\nlayout.inactive = "drop"'
        node = f'nodes = [{{ path = "records/{beside}", layout.inactive = "drop", columns = {{ id = "id", name = "name", type = "kind" }} }}]'
        tell(f"edges of {files}", f'[sources.edges.records]\nfiles = ["records/{files}"]\n{ends}\n{node}', graph.kept(), inactive=graph.over_rows(), obsolete=graph.loose_rows(), **blank)


def dated_edges():
    graph = Graph("dated edges")
    put("dated/edges.csv", table(("from", "relation", "to", "active"), [(one, relation, other, int(not over)) for one, relation, other, over in graph.rows], COMMA))
    put("dated/nodes.tsv", table(("id", "name", "in_use"), [(number, name(number), "no" if number in graph.old else "yes") for number in range(THINGS)]))
    ends = 'subject.id = "from"\nobject.id = "to"\nrelation.column = "relation"\nlayout.active = "active"'
    nodes = 'nodes = [{ path = "dated/nodes.tsv", layout = { separator = "tab", active = "in_use" }, columns = { id = "id", name = "name" } }]'
    tell("edges with a validity", f'[sources.edges.dated]\nfiles = ["dated/edges.csv"]\n{ends}\n{nodes}', graph.kept(), inactive=graph.over_rows(), obsolete=graph.loose_rows())


def dated_neo4j():
    graph = Graph("dated neo4j")
    put("dated/graph.csv", table(
        ("_id", "_labels", "name", "valid", "_start", "_end", "_type"),
        [*((number, ":Disease", quoted(name(number)), str(number not in graph.old).lower(), "", "", "") for number in range(THINGS)),
         *(("", "", "", str(not over).lower(), one, other, relation) for one, relation, other, over in graph.rows)], COMMA))
    tell("neo4j with a validity", '[sources.neo4j.dated]\nfiles = ["dated/graph.csv"]\nactive = "valid"', graph.kept(), inactive=graph.over_rows(), obsolete=graph.loose_rows())


def neo4j():
    graph = Graph("neo4j")
    # Things out of use are in no table of nodes.
    nodes = [(number, quoted(name(number)), "Disease") for number in range(THINGS) if number not in graph.old]
    put("nodes.csv", table((":ID(Disease)", "name", ":LABEL"), nodes, COMMA))
    put("relationships.csv", table((":START_ID(Disease)", ":TYPE", ":END_ID(Disease)"), [(one, relation, other) for one, relation, other, over in graph.rows if not over], COMMA))
    tell("neo4j", '[sources.neo4j.graph]\nfiles = ["nodes.csv", "relationships.csv"]', graph.kept(), no_node=graph.loose_rows())
    # The same as `neo4j-admin` takes it: a file for the header, several for the rows, labels and types said beside them.
    half = len(nodes) // 2
    put("groups/nodes-header.csv", ":ID(Disease),name\n")
    put("groups/nodes-1.csv", table(nodes[0][:2], [row[:2] for row in nodes[1:half]], COMMA))
    put("groups/nodes-2.csv.gz", table(nodes[half][:2], [row[:2] for row in nodes[half + 1 :]], COMMA))
    groups = ['{ files = ["groups/nodes-header.csv", "groups/nodes-1.csv", "groups/nodes-2.csv.gz"], labels = ["Disease"] }']
    put("groups/rows-header.csv", ":START_ID(Disease),:END_ID(Disease)\n")
    for relation in ("is_a", "site"):
        rows = [(one, other) for one, of, other, over in graph.rows if not over and of == relation]
        put(f"groups/{relation}.csv", table(rows[0], rows[1:], COMMA))
        groups.append(f'{{ files = ["groups/rows-header.csv", "groups/{relation}.csv"], type = "{relation}" }}')
    tell("neo4j in groups", f"[sources.neo4j.graph]\ngroups = [{', '.join(groups)}]", graph.kept(), no_node=graph.loose_rows())


def kgx():
    graph = Graph("kgx")
    nodes = [{"id": f"MONDO:{number}", "name": name(number), "category": ["biolink:Disease"], "deprecated": number in graph.old} for number in range(THINGS)]
    edges = [
        {"subject": f"MONDO:{one}", "predicate": "biolink:subclass_of" if relation == "is_a" else "biolink:located_in", "object": f"MONDO:{other}", "negated": over and one % 2 == 0, "deprecated": over and one % 2 == 1}
        for one, relation, other, over in graph.rows
    ]
    negated = sum(edge["negated"] for edge in edges)
    deprecated = graph.over_rows() - negated + graph.loose_rows()
    lines = lambda of: "".join(json.dumps(record) + "\n" for record in of)
    put("kgx/nodes.jsonl", lines(nodes))
    put("kgx/edges.jsonl", lines(edges))
    put("kgx/graph.json", json.dumps({"nodes": nodes, "edges": edges}))
    put("kgx/nodes.tsv", table(("id", "name", "category", "deprecated"), [(of["id"], of["name"], "biolink:Disease", of["deprecated"]) for of in nodes]))
    put("kgx/edges.tsv", table(("subject", "predicate", "object", "negated", "deprecated"), [tuple(str(value) for value in of.values()) for of in edges]))
    for nodes, edges in (("nodes.jsonl", "edges.jsonl"), ("graph.json", "graph.json"), ("nodes.tsv", "edges.tsv")):
        tell(f"kgx {nodes}", f'[sources.kgx.own]\nnodes = "kgx/{nodes}"\nedges = "kgx/{edges}"', graph.kept(), negated=negated, deprecated=deprecated)


def tabular(path):
    """What the chapters, blocks, categories and codes of ICD-10-CM are part of."""
    rows = set()

    def below(element, parent):
        for child in element:
            if child.tag in ("section", "diag"):
                own = child.get("id") if child.tag == "section" else child.findtext("name")
                rows.add((own.strip(), "isa", parent))
                below(child, own.strip())

    for chapter in ElementTree.parse(path).getroot().iter("chapter"):
        below(chapter, chapter.findtext("name").strip())
    # A block with no more than its one category has the category's code.
    tell(Path(path).name, f'[sources.icd10cm]\npath = "{path}"', {row for row in rows if row[0] != row[2]})


def graph_of(path):
    """The edges of a KGX graph between nodes that it has; one that is given twice, or of a node with itself, is none."""
    read = lambda path: Path(path).read_text(encoding="utf-8")
    beside = path.replace("edges.jsonl", "nodes.jsonl")
    lines = lambda path: [json.loads(line) for line in read(path).splitlines()]
    graph = {"nodes": lines(beside), "edges": lines(path)} if beside != path else json.loads(read(path))
    nodes = {node["id"] for node in graph["nodes"]}
    rows = [(edge["subject"], edge["predicate"], edge["object"]) for edge in graph["edges"]]
    kept = {row for row in rows if {row[0], row[2]} <= nodes and row[0] != row[2]}
    tell(Path(path).name, f'[sources.kgx.own]\nnodes = "{beside}"\nedges = "{path}"', kept, no_node=sum(not {row[0], row[2]} <= nodes for row in rows))


def obo_graph_of(path):
    """The edges of OBO graphs between terms in use."""
    graphs = json.loads(Path(path).read_text(encoding="utf-8"))["graphs"]
    nodes = [node for graph in graphs for node in graph["nodes"]]
    terms = {node["id"] for node in nodes if node.get("type") == "CLASS" and node.get("lbl") and not node.get("meta", {}).get("deprecated")}
    rows = {(edge["sub"], edge["pred"], edge["obj"]) for graph in graphs for edge in graph["edges"]}
    tell(Path(path).name, f'[sources.obo]\npath = "{path}"', {row for row in rows if {row[0], row[2]} <= terms and row[0] != row[2]})


def of_json(path):
    (obo_graph_of if '"graphs"' in Path(path).read_text(encoding="utf-8")[:1000] else graph_of)(path)


def counted(path):
    """The terms of an OBO file that are in use, and what they say of each other; of a relation and its inverse one direction."""
    terms, rows, inverse = {}, [], {}
    for stanza in Path(path).read_text(encoding="utf-8").split("\n\n"):
        lines = stanza.strip().split("\n")
        tags = [line.split(": ", 1) for line in lines[1:]]
        values = lambda name: [value.split(" !")[0].split(" {")[0].strip() for tag, value in tags if tag == name]
        if lines[0] == "[Typedef]":
            inverse |= {values("id")[0]: other for other in values("inverse_of")}
        if lines[0] != "[Term]":
            continue
        own = values("id")[0]
        if values("is_obsolete") != ["true"]:
            terms[own] = values("name")[0]
        rows += [(own, "is_a", other) for other in values("is_a")]
        rows += [(own, *row.split()[:2]) for row in values("relationship")]
    inverse |= {other: one for one, other in inverse.items()}
    turned = lambda row: (row[2], inverse[row[1]], row[0]) if inverse.get(row[1], "~") < row[1] else row
    rows = [turned(row) for row in rows]
    tell(Path(path).name, f'[sources.obo]\npath = "{path}"', {row for row in rows if row[0] in terms and row[2] in terms})


for kind in ("Snapshot", "Full"):
    snomed(kind)
for write in (omop, rxnorm, icd10cm, ontologies, rdf, primekg, edge_records, dated_edges, neo4j, dated_neo4j, kgx):
    write()
for path in sys.argv[2:]:
    {".obo": counted, ".xml": tabular, ".json": of_json, ".jsonl": graph_of}[Path(path).suffix](path)
