//! Small configs that together have nearly every setting, each made in a second or two.
use std::path::{Path, PathBuf};

use base::whole::write_whole;
use engraft::in_process::Trial;

/// A config that can be run, and how it is made small.
pub(super) struct Base {
    pub(super) name: &'static str,
    pub(super) trial: Trial,
}

/// Training in steps, not in epochs.
const FEW: [&str; 12] = [
    "world.scale=0.05",
    "pretrain.max_steps=2",
    "pretrain.stream.batching={ items = 8 }",
    "finetune.epochs=1",
    "finetune.seeds=[1]",
    "finetune.batch=8",
    "finetune.max_tokens=32",
    "finetune.max_examples={ train = 16, dev = 60, mask_search = 60, test = 60 }",
    "encoder.hidden_size=8",
    "encoder.num_hidden_layers=1",
    "encoder.num_attention_heads=2",
    "encoder.intermediate_size=8",
];

/// What each config has besides.
const WHOLE: [&str; 2] = ["retrain.max_steps=3", "retrain.stream.batching={ items = 8 }"];

const GRAFT: [&str; 7] = [
    "world.scale=0.3",
    "retrain.max_steps=2",
    "vocabulary.train.size=600",
    "finetune.settings_of.capr.epochs=1",
    "graft.rows=[\"base\", \"pruned\", \"soft\"]",
    "finetune.search={ rows = \"base\", trials = 1, seed = 1, finetune_seeds = [1], learning_rate = { least = 1e-4, most = 1e-3 }, warmup = [0.1], epochs = [1], batch = [8], dropout = [0.1] }",
    "finetune.ranking.negatives=3",
];

const LABELS: [&str; 3] = [
    "world.scale=0.3",
    "finetune.on=[\"questions\", \"entailed\"]",
    "attentions=[{ name = \"labels\", labels = {}, on = [\"questions\"] }]",
];

const TOGETHER: [&str; 3] = [
    "world.scale=0.3",
    "recipes=[{ name = \"mt\", tasks = [\"diseases\", \"alike\", \"diagnoses\"], weights = { alike = 0.5 }, batch_of = { alike = 4 }, \
     then = { epochs = 1 } }, { name = \"pairs\", tasks = [\"drugs\", \"entailed\"], pairwise = true }]",
    "finetune.on=[\"diseases\", \"alike\", \"diagnoses\", \"drugs\", \"entailed\"]",
];

const DEFAULT: [&str; 12] = [
    "rank={ max_triples = 5 }",
    "world.scale=0.05",
    "vocabulary.train.size=500",
    "retrain.max_steps=3",
    "retrain.stream={ pack = 64 }",
    "retrain.stream.batching={ bucketed = { items = 8, pool = 2 } }",
    "retrain.patience={ every = 2, evaluations = 1, batches = 1 }",
    "retrain.heads={ mode = \"none\" }",
    "split={ parts = { ratio = { train = 0.8, valid = 0.1, test = 0.1, cover = \"train\" } }, detect_inverses = 0.9, suspect = { accept = 1.0 } }",
    "encoder={ from = \"fresh\", hidden_size = 8, num_hidden_layers = 1, num_attention_heads = 2, intermediate_size = 8, max_position_embeddings = 256 }",
    "sources.umls.min_relation_count=1",
    "shards.size={ rows = 700 }",
];

/// Tables of one's own, in three forms.
const OWN: &str = r#"
version = 5
[sources.triples.folder]
kg_bert = "folder"
[sources.triples.tables]
table.files = [{ path = "rows.tsv", part = "train" }]
table.layout = { separator = "tab", first_line = "names", columns = { subject = "s", relation = "r", object = "o", weight = "w" } }
entity_texts = "texts.tsv"
max_untexted = 1.0
inverses = [["treats", "treated_by"]]
level = 2
[sources.kgx.graph]
nodes = "nodes.tsv"
edges = "edges.tsv"
max_untexted = 1.0
[sources.obo]
path = "go.obo"
[split]
parts = { official = { source = "folder" } }
on_leak = "report"
suspect = { accept = 1.0 }
[vocabulary]
file = "vocab.txt"
[shards.tagging]
files = { paths = ["notes.jsonl"], format = { jsonl = { unit = "characters" } } }
[shards.masked_lm]
files = { paths = ["notes.jsonl"], format = { jsonl = { unit = "characters" } } }
hide = "entities"
[encoder]
from = "fresh"
hidden_size = 8
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 8
[pretrain]
max_steps = 2
stream.batching = { items = 4 }
alphas = { masked_lm = 1.0 }
[lama]
data = "lama"
corpora = ["squad"]
of = ["pretrain"]
max_tokens = 64
words = "words.txt"
"#;

fn text(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_whole(&path, text.as_bytes()).unwrap();
}

/// The files of [`OWN`].
fn own(folder: &Path) {
    let triples = |from: usize, to: usize| -> String {
        (from..to)
            .map(|i| format!("d{i}\ttreats\td{}\nd{i}\tcauses\td{}\n", (i * 7 + 3) % 40, (i * 5 + 1) % 40))
            .collect()
    };
    let entities: String = (0..40).map(|i| format!("d{i}\tdisease number {i}\n")).collect();
    text(folder, "folder/train.tsv", &triples(0, 30));
    text(folder, "folder/dev.tsv", &triples(30, 35));
    text(folder, "folder/test.tsv", &triples(35, 40));
    text(folder, "folder/entity2text.txt", &entities);
    let ids: String = (0..40).map(|i| format!("d{i}\n")).collect();
    text(folder, "folder/entities.txt", &ids);
    text(folder, "folder/relations.txt", "treats\ncauses\n");
    text(folder, "folder/relation2text.txt", "treats\ttreats\ncauses\tcauses\n");
    let rows: String = (0..40).map(|i| format!("d{i}\ttreats\td{}\t0.5\n", (i * 11 + 2) % 40)).collect();
    text(folder, "rows.tsv", &format!("s\tr\to\tw\n{rows}"));
    text(folder, "texts.tsv", &entities);
    text(
        folder,
        "nodes.tsv",
        "id\tcategory\tname\nX:1\tbiolink:Disease\tfever\nX:2\tbiolink:Drug\taspirin\n",
    );
    text(folder, "edges.tsv", "subject\tpredicate\tobject\nX:2\tbiolink:treats\tX:1\n");
    text(
        folder,
        "go.obo",
        "format-version: 1.2\n\n[Term]\nid: GO:0000001\nname: growth\n\n[Term]\nid: GO:0000002\nname: cell growth\nis_a: GO:0000001 ! growth\n",
    );
    let words = [
        "disease", "number", "fever", "aspirin", "treats", "causes", "growth", "cell", "helps", "with",
        "the", "and", "of",
    ];
    let mut vocabulary: Vec<String> =
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).into();
    vocabulary.extend(words.map(str::to_owned));
    for c in ('a'..='z').chain('0'..='9').chain(['.', ',']) {
        vocabulary.extend([c.to_string(), format!("##{c}")]);
    }
    text(folder, "vocab.txt", &(vocabulary.join("\n") + "\n"));
    let note = "{\"text\": \"aspirin helps with fever and growth of the cell\", \"spans\": [{\"start\": 0, \"end\": 7, \"label\": \"Drug\"}]}\n";
    text(folder, "notes.jsonl", &note.repeat(24));
    let fact = |id: usize| {
        format!(
            "{{\"masked_sentences\": [\"aspirin helps with [MASK] .\"], \"obj_label\": \"fever\", \"id\": \"f{id}\", \"sub_label\": \"Squad\"}}\n"
        )
    };
    text(folder, "lama/Squad/test.jsonl", &(0..4).map(fact).collect::<String>());
    text(folder, "words.txt", &(words.join("\n") + "\n"));
}

/// All of them, below `folder`.
pub(super) fn bases(folder: &Path) -> Vec<Base> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = folder.join("data");
    own(&data);
    text(folder, "own.toml", OWN);
    let shipped = |name: &str| root.join("configs").join(name);
    let all: [(&str, PathBuf, Vec<&str>); 6] = [
        ("default", shipped("default.toml"), DEFAULT.to_vec()),
        ("own", folder.join("own.toml"), vec![]),
        ("whole", root.join("tests/fixtures/whole.toml"), [&FEW[..], &WHOLE].concat()),
        ("labels", shipped("world-label-embedding.toml"), [&FEW[..], &LABELS].concat()),
        ("together", shipped("world-mt-bert.toml"), [&FEW[..], &TOGETHER].concat()),
        ("graft", shipped("graft.toml"), [&FEW[..], &GRAFT].concat()),
    ];
    let base = |(name, config, sets): (&'static str, PathBuf, Vec<&str>)| Base {
        name,
        trial: Trial {
            config: Some(config),
            sets: sets.into_iter().map(str::to_owned).collect(),
            data: Some(data.clone()),
            out: folder.join(name),
        },
    };
    all.into_iter().map(base).collect()
}
