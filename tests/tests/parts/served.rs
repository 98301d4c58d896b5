//! Parts of a corpus that lies on a server: each reads its own files, and who plans or joins reads none.
use std::fs;
use std::path::Path;

use engraft_tests::server::{Manner, Request, Server};
use engraft_tests::{Engraft, assert_same, below};

use super::Corpus;

/// Four files of a corpus on a server.
struct Served {
    server: Server,
    urls: Vec<String>,
    sizes: [usize; 4],
}

impl Served {
    fn new(corpus: &Corpus) -> Self {
        Self::of(|number| fs::read(corpus.at("texts").join(format!("{number}.txt"))).unwrap())
    }

    fn of(text: impl Fn(usize) -> Vec<u8>) -> Self {
        let server = Server::start().unwrap();
        let (mut urls, mut sizes) = (Vec::new(), [0; 4]);
        for (number, size) in sizes.iter_mut().enumerate() {
            let (name, text) = (format!("{number}.txt"), text(number));
            server.put(&format!("/{name}"), &text, Some("e"), Manner::Full);
            urls.push(server.url(&format!("/{name}")));
            *size = text.len();
        }
        Self { server, urls, sizes }
    }

    /// Bytes that were asked for of each file since the last look, however often.
    fn fetched(&self) -> [usize; 4] {
        let requests = self.server.requests();
        [0, 1, 2, 3].map(|number| {
            let of_file =
                |request: &&Request| request.method == "GET" && request.target == format!("/{number}.txt");
            let size = self.sizes[number];
            let bytes = |request: &Request| match request.headers.get("range") {
                Some(range) => {
                    let (first, last) = range.trim_start_matches("bytes=").split_once('-').unwrap();
                    let end = last.parse().map_or(size, |last: usize| size.min(last + 1));
                    end - first.parse::<usize>().unwrap()
                }
                None => size,
            };
            requests.iter().filter(of_file).map(bytes).sum::<usize>()
        })
    }
}

#[test]
fn a_part_reads_its_own_files_from_a_server_and_no_others() {
    let corpus = Corpus::new();
    let served = Served::new(&corpus);
    let (urls, sizes) = (&served.urls, served.sizes);
    let config = corpus.at("remote.toml");
    let vocabulary = corpus.at("vocab.txt");
    base::whole::write_whole(&vocabulary, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n").unwrap();
    let text = format!(
        "version = 5\nvocabulary.file = {vocabulary:?}\n[corpus]\nparts.bytes = \"1kB\"\ntexts = [{{ name = \"notes\", paths = {urls:?}, format.text = \"paragraph\" }}]\n[counts]\n"
    );
    base::whole::write_whole(&config, text.as_bytes()).unwrap();
    let run = |stage: &str, out: &str| {
        let cache = corpus.at(&format!("{out}-cache"));
        Engraft::plain(&["run", stage], &corpus.at(out))
            .arg("--config")
            .arg(&config)
            .arg("--cache")
            .arg(cache)
    };
    run("counts.part-0003", "third").ok();
    assert_eq!(served.fetched(), [0, 0, sizes[2], 0]);
    run("counts", "all").ok();
    assert_eq!(served.fetched(), sizes, "the whole, with a cache of its own, reads each once");
    let read = format!(
        "shards.masked_lm.files={{ paths = {urls:?}, format.text = \"paragraph\", parts.bytes = \"1kB\" }}"
    );
    let passages = Engraft::small(&["run", "masked_lm.part-0002"], &corpus.at("passages"));
    passages.set(&read).arg("--cache").arg(corpus.at("passages-cache")).ok();
    assert_eq!(served.fetched(), [0, sizes[1], 0, 0], "passages of a part");
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-maps.toml");
    let texts =
        format!("corpus.texts=[{{ name = \"notes\", paths = {urls:?}, format.text = \"paragraph\" }}]");
    let mentions =
        Engraft::plain(&["run", "mentions.part-0003"], &corpus.at("mentions")).arg("--config").arg(&world);
    let mentions =
        mentions.set("world.scale=0.3").set("tag={}").set(&texts).set("corpus.parts.bytes=\"1kB\"");
    mentions.arg("--cache").arg(corpus.at("mentions-cache")).ok();
    assert_eq!(served.fetched(), [0, 0, sizes[2], 0], "mentions of a part");
    // And texts whose words are tagged.
    let line = |number: usize| {
        let pain = 4 + number.to_string().len();
        format!(
            "{{\"text\": \"In {number} pain\", \"spans\": [{{\"start\": {pain}, \"end\": {}, \"label\": \"Sign\"}}]}}\n",
            pain + 4
        )
    };
    let tagged = Served::of(|number| line(number).repeat(20 + number).into_bytes());
    let files = format!(
        "{{ files = {{ paths = {:?}, format = {{ jsonl = {{ unit = \"characters\" }} }}, max_tokens = 32, parts.bytes = \"1kB\" }} }}",
        tagged.urls
    );
    let part = Engraft::small(&["run", "tagging.part-0004"], &corpus.at("tagged"));
    let part = part
        .set("shards.tasks=[\"subject\", \"object\", \"relation\", \"triplet\", \"tagging\"]")
        .set(&format!("shards.tagging={files}"));
    part.arg("--cache").arg(corpus.at("tagged-cache")).ok();
    assert_eq!(tagged.fetched(), [0, 0, 0, tagged.sizes[3]], "tagged texts of a part");
}

#[test]
fn with_a_depot_a_part_of_maps_reads_its_own_files_and_who_plans_or_joins_none() {
    let corpus = Corpus::new();
    let served = Served::new(&corpus);
    let (urls, sizes) = (&served.urls, served.sizes);
    let texts =
        format!("corpus.texts=[{{ name = \"notes\", paths = {urls:?}, format.text = \"paragraph\" }}]");
    // Every machine has an output folder and a cache of its own.
    let on = |machine: &str, verb: &[&str]| {
        let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/world-maps.toml");
        let run =
            Engraft::plain(verb, &corpus.at(machine)).arg("--config").arg(&world).set("world.scale=0.3");
        run.set(&texts).arg("--cache").arg(corpus.at(&format!("{machine}-cache")))
    };
    on("whole", &["run", "maps"]).ok();
    assert_eq!(served.fetched(), sizes);
    let depot = corpus.at("depot");
    let shared = |machine: &str, verb: &[&str]| {
        on(machine, verb).set("corpus.parts.bytes=\"1kB\"").arg("--depot").arg(&depot)
    };
    let only = |number: usize| {
        let mut only = [0; 4];
        only[number] = sizes[number];
        only
    };
    for number in [2, 0, 3, 1] {
        let part = format!("counts.part-{:04}", number + 1);
        shared(&part, &["run", &part]).ok();
        assert_eq!(served.fetched(), only(number), "{part}");
    }
    shared("joins", &["run", "pmi"]).ok();
    shared("plans", &["plan", "maps"]).ok();
    assert_eq!(served.fetched(), [0; 4], "parts are joined, and maps planned, without the texts");
    for number in [1, 0, 2, 3] {
        let part = format!("maps.part-{:04}", number + 1);
        let said = shared(&part, &["run", &part]).output();
        assert!(said.code() == Some(0), "{}", said.text());
        assert!(said.text().contains(&format!("fetching {}", urls[number])), "{}", said.text());
        assert_eq!(served.fetched(), only(number), "{part}");
    }
    shared("joins", &["run", "maps"]).ok();
    assert_eq!(served.fetched(), [0; 4]);
    let [whole, joined] = ["whole", "joins"].map(|machine| below(&corpus.at(machine).join("maps"), |_| true));
    assert_same(&whole, &joined, "maps");
    // A file that has changed is another one; one that was replaced under the tag that it had is found out when it comes.
    served.server.put("/2.txt", b"A cough.", Some("f"), Manner::Full);
    shared("later", &["run", "counts.part-0003"]).ok();
    let text = vec![b'a'; sizes[1]];
    served.server.put("/1.txt", &text, Some("e"), Manner::Full);
    for _ in 0..2 {
        let run = shared("false", &["run", "counts.part-0002"]).set("counts.what.within=\"document\"");
        let refused = run.output();
        assert!(
            refused.code() != Some(0) && refused.text().contains("is not what the depot says of it (files/"),
            "{}",
            refused.text()
        );
    }
}
