//! Downstream benchmarks on what is published, where the user has it: every passage found, the same lists each time, BM25's own scores; and
//! the world's hospital through the four outcomes.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::rng::RngKey;
use downstream::capr::candidates::{Candidates, Config, Ranking, candidates};
use downstream::capr::part::{Part, Parts, Shares};
use downstream::capr::training::Trainer;
use downstream::capr::{Collection, QueryId, cdv, read, wikisection, write};
use downstream::cop::sample::{Outcome, samples};
use downstream::cop::split::{Drawn, Split};
use downstream::cop::{self, Files, Variant};
use downstream::example::Answer;
use engraft_tests::{artifacts, assert_same, skipped};
use kg::split::Part as Of;
use model::eval::retrieval::{self, Query, Report};

/// The published protocol.
const PUBLISHED: Config = Config { per_query: 64, min_characters: 10 };

/// A folder of `ENGRAFT_DATA`, if it is there.
#[allow(clippy::disallowed_methods, reason = "tests take the place of real data from the environment")]
fn data(folders: &[&str]) -> Option<PathBuf> {
    let data = std::env::var_os("ENGRAFT_DATA").map(PathBuf::from);
    let data = data.filter(|data| folders.iter().all(|folder| data.join(folder).exists()));
    if data.is_none() {
        skipped(&format!("ENGRAFT_DATA does not name a folder with {}", folders.join(" and ")));
    }
    data
}

fn medquad(data: &Path) -> Collection {
    let annotations = data.join("cdv/data/MedQuAD/MedQuAD_test_annotations.json");
    let (collection, aligned) = cdv::read(&annotations, cdv::Texts::Medquad(&data.join("medquad"))).unwrap();
    assert_eq!((aligned.files, aligned.ambiguous), (11_274, 0));
    assert_eq!(aligned.answers, 16_423);
    collection
}

/// How well scores by passage rank each list.
fn evaluate(lists: &[Candidates], score: impl Fn(&Candidates) -> Vec<f64>) -> Report {
    let scored: Vec<(Vec<f64>, &[bool])> =
        lists.iter().map(|list| (score(list), list.relevant.as_slice())).collect();
    let queries: Vec<Query<'_>> =
        scored.iter().map(|(scores, relevant)| Query { scores, relevant }).collect();
    retrieval::evaluate(&queries, &[1, 5, 10]).unwrap()
}

#[test]
fn every_passage_and_query_of_the_medquad_test_set_is_found() {
    let Some(data) = data(&["medquad", "cdv"]) else { return };
    let collection = medquad(&data);
    let counts = (collection.documents.len(), collection.passages.len(), collection.queries.len());
    assert_eq!(counts, (1_111, 3_762, 3_293));
    let answers: BTreeMap<usize, u64> =
        [(1, 3_185), (2, 77), (3, 12), (4, 6), (5, 4), (6, 6), (7, 1), (9, 1), (10, 1)].into();
    assert_eq!(collection.answers(), answers);
}

#[test]
fn candidates_are_the_same_each_time_and_their_order_gives_nothing_away() {
    let Some(data) = data(&["medquad", "cdv"]) else { return };
    let collection = medquad(&data);
    let lists = candidates(&collection, &PUBLISHED).unwrap();
    assert_eq!(lists.len(), 3_293);
    assert!(lists.iter().all(|list| list.passages.len() <= 64 && list.relevant.contains(&true)));
    // Who says the same of all candidates has nothing but their order.
    let constant = evaluate(&lists, |list| vec![0.0; list.passages.len()]);
    assert!(constant.hit_at[&1] < 0.02, "{constant:?}");
    // What tests/python/bm25_medquad.py prints.
    assert_eq!(lists.iter().map(|list| list.passages.len()).sum::<usize>(), 210_626);

    let shares = Shares { dev: 0.1, mask_search: 0.1 };
    let parts = Parts::draw(&collection, shares, RngKey::new(1)).unwrap();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [one.path(), two.path()] {
        // Threads share the queries out another way each time.
        let lists = candidates(&collection, &PUBLISHED).unwrap();
        write::write(folder, &collection, &parts, &PUBLISHED, &lists).unwrap();
    }
    assert_same(&artifacts(one.path()), &artifacts(two.path()), "written once and again");
    let folder = read::read(one.path()).unwrap();
    assert_eq!((folder.lists, &folder.parts, &folder.collection), (lists, &parts, &collection));

    let (reported, searched) =
        (parts.queries(&collection, Part::Main), parts.queries(&collection, Part::MaskSearch));
    assert!(searched.len() > 150 && reported.len() > 2_000, "{} {}", searched.len(), reported.len());
    assert!(searched.iter().all(|query| reported.binary_search(query).is_err()));
    let trainer = Trainer::new(&collection, &parts, Part::Main, 9, RngKey::new(1));
    for &query in &reported {
        assert_eq!(trainer.draw(0, query).unwrap().negatives.len(), 9);
    }
}

#[test]
fn bm25_alone_ranks_as_it_is_known_to() {
    let Some(data) = data(&["medquad", "cdv"]) else { return };
    let collection = medquad(&data);
    let lists = candidates(&collection, &PUBLISHED).unwrap();
    let ranking = Ranking::new(&collection, PUBLISHED.min_characters).unwrap();
    let queries: Vec<QueryId> = collection.query_ids().collect();
    let scores = ranking.each(&collection, &queries, &|_, scores| scores);
    let among = evaluate(&lists, |list| {
        let scores = &scores[list.query.0 as usize];
        list.passages.iter().map(|passage| scores[passage.0 as usize]).collect()
    });
    // Among all passages, too.
    let relevant = |query: &QueryId| {
        let mut relevant = vec![false; collection.passages.len()];
        collection.query(*query).relevant.iter().for_each(|passage| relevant[passage.0 as usize] = true);
        relevant
    };
    let relevant: Vec<Vec<bool>> = queries.iter().map(relevant).collect();
    let all: Vec<Query<'_>> =
        scores.iter().zip(&relevant).map(|(scores, relevant)| Query { scores, relevant }).collect();
    let all = retrieval::evaluate(&all, &[1, 5, 10, 64]).unwrap();
    for (name, report) in [("candidates", &among), ("all passages", &all)] {
        println!("BM25 among {name}: {report:?}");
    }
    // What tests/python/bm25_medquad.py prints, which is another implementation of the same words and formula.
    for (k, expected) in [(1, 0.294_276), (5, 0.780_199), (10, 0.860_356)] {
        assert!((among.recall_at[&k] - expected).abs() < 1e-6, "{k}: {among:?}");
        assert!((all.recall_at[&k] - expected).abs() < 1e-6, "{k}: {all:?}");
    }
    assert!((among.mrr - 0.494_328).abs() < 1e-6 && (all.mrr - 0.493_095).abs() < 1e-6, "{among:?} {all:?}");
}

#[test]
fn articles_of_wikisection_are_a_collection() {
    let Some(data) = data(&["wikisection"]) else { return };
    let folder = data.join("wikisection/texoo-fixtures");
    let names = ["dementia", "dermatitis", "dyslexia", "higashi"];
    let files: Vec<PathBuf> =
        names.iter().map(|name| folder.join(format!("en_disease_{name}.json"))).collect();
    let collection = wikisection::read("fixtures", &files).unwrap();
    assert_eq!((collection.documents.len(), collection.passages.len()), (4, 55));
    assert!(collection.queries.len() <= 55 && candidates(&collection, &PUBLISHED).unwrap().len() > 40);
}

#[test]
fn healthqa_says_which_text_it_wants() {
    let Some(data) = data(&["cdv"]) else { return };
    let annotations = data.join("cdv/data/HealthQA/HealthQA_test_annotations.json");
    let message = cdv::read(&annotations, cdv::Texts::Medquad(&data)).unwrap_err().to_string();
    assert!(
        message.contains("pinfo-mz-test.txt") && message.contains("label<TAB>question<TAB>passage"),
        "{message}"
    );
}

#[test]
fn the_worlds_hospital_has_all_four_outcomes() {
    let out = tempfile::tempdir().unwrap();
    world::write(&world::Config { seed: 1, scale: 1.0 }, out.path(), &mut |_| Ok(())).unwrap();
    let files = Files::of(&out.path().join("mimic"));
    for variant in [Variant::Reference, Variant::Fixed] {
        let stays = cop::read(&files, variant).unwrap();
        let funnel = &stays.funnel;
        assert!(funnel.admission_notes > 200 && funnel.newborn > 0 && funnel.repeated > 0, "{funnel:?}");
        assert_eq!(funnel.admission_notes, stays.stays.len() as u64);
        let split = Split::drawn(Drawn { seed: RngKey::new(1), valid: 0.1, test: 0.2 }).unwrap();
        for outcome in Outcome::ALL {
            let task = samples(&stays, outcome);
            let dropped: u64 = task.dropped.values().sum();
            assert_eq!(task.samples.len() as u64 + dropped, funnel.admission_notes, "{outcome:?}");
            let met: std::collections::BTreeSet<u32> = task
                .samples
                .iter()
                .flat_map(|sample| match &sample.answer {
                    Answer::Class(class) => vec![*class],
                    Answer::Classes(classes) => classes.clone(),
                    Answer::Score(_)
                    | Answer::Tags(_)
                    | Answer::Choice(_)
                    | Answer::MaskedWords
                    | Answer::Span(_) => Vec::new(),
                })
                .collect();
            assert!(
                met.len() > 1 && met.iter().all(|&class| (class as usize) < task.classes.len()),
                "{outcome:?}"
            );
            let train = task.samples.iter().filter(|sample| split.part(sample.patient) == Some(Of::Train));
            assert!(train.count() > task.samples.len() / 2);
            assert!(task.samples.iter().all(|sample| !sample.text.contains("Discharge Diagnosis")));
        }
    }
}
