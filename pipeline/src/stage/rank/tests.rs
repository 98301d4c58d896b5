//! Ranks against counting one by one, and settings that are refused.

use base::rng::RngKey;
use batch::task::Task;
use kg::canon::relation::Turn;
use model::encoder::pool::Pooling;
use tasks::link::Candidates;
use tasks::negative::Same;
use tasks::sample::Corpus;

use super::*;
use crate::stage::retrain;

/// A score with many ties.
fn score([subject, relation, object]: Triple) -> f32 {
    f32::from(u8::try_from((7 * subject + 13 * relation + 29 * object * object) % 5).unwrap())
}

fn corpus() -> Corpus<'static> {
    Corpus {
        entities: vec!["a", "b", "c", "d", "e", "f", "A"],
        types: vec![&[]; 7],
        relations: vec!["r", "s", "s inverse"],
        ways: vec![(0, Turn::Sorts), (1, Turn::Stays), (1, Turn::Exchanges)],
        triples: (0..6).flat_map(|at| [[at, 0, (at + 1) % 6], [at, 1, (at + 2) % 6]]).collect(),
        rows: (0..12).collect(),
        held: vec![[0, 0, 3], [0, 1, 4], [5, 1, 3], [3, 2, 0]],
    }
}

#[test]
fn ranks_are_those_of_counting_one_by_one() {
    let corpus = corpus();
    for same in [Same::Texts, Same::Ids] {
        let stated = Stated::new(&corpus, same);
        for candidates in [Candidates::All, Candidates::Sampled(3), Candidates::Sampled(99)] {
            let room = Room { entities: 7, relations: 3, candidates, seed: RngKey::new(2), together: 20 };
            let questions = Slot::ALL.into_iter().flat_map(|slot| {
                (12..).zip(&corpus.held).map(move |(row, &triple)| Question { slot, triple, row })
            });
            let groups = room.groups(questions.collect());
            assert_eq!(groups.iter().map(|group| group.questions.len()).sum::<usize>(), 12);
            for group in &groups {
                let scores: Vec<f32> = group.triples().map(score).collect();
                let stems = (0..group.stems.len()).map(|stem| Stem { group, stem, scores: &scores });
                let found: Vec<Answered> = stems.flat_map(|stem| stem.answered(&stated, 2)).collect();
                assert_eq!(found.len(), group.questions.len());
                for answered in &found {
                    let question = answered.question;
                    let (mut filtered, mut raw) = ((1.0, 0, 1), (1.0, 0, 1));
                    for &candidate in group.candidates.iter() {
                        let mut other = question.triple;
                        other[question.slot as usize] = candidate;
                        if other == question.triple {
                            continue;
                        }
                        for (place, counts) in [(&mut filtered, !stated.has(other)), (&mut raw, true)] {
                            if counts {
                                place.0 += f64::from(u8::from(score(other) > score(question.triple)));
                                place.1 +=
                                    u32::from(score(other).to_bits() == score(question.triple).to_bits());
                                place.2 += 1;
                            }
                        }
                    }
                    for (found, expected) in [(answered.filtered, filtered), (answered.raw, raw)] {
                        let rank = expected.0 + f64::from(expected.1) / 2.0;
                        let of = (found.realistic().to_bits(), found.ties, found.candidates);
                        assert_eq!(of, (rank.to_bits(), expected.1, expected.2), "{question:?}");
                    }
                    assert_eq!(answered.score.to_bits(), score(question.triple).to_bits());
                    let best = &answered.best;
                    assert_eq!(best.len(), 2.min(group.candidates.len()));
                    let mut all: Vec<f32> = group
                        .candidates
                        .iter()
                        .map(|&candidate| {
                            let mut other = question.triple;
                            other[question.slot as usize] = candidate;
                            score(other)
                        })
                        .collect();
                    all.sort_by(|one, other| other.total_cmp(one));
                    let scores: Vec<f32> = best.iter().map(|candidate| candidate.score).collect();
                    assert_eq!(scores, all[..best.len()]);
                }
            }
        }
    }
}

#[test]
fn another_name_of_the_answer_is_as_true_as_the_answer() {
    let corpus = corpus();
    // `A` reads as `a` does: with `texts` it is left out as true, with `ids` it competes.
    let question = Question { slot: Slot::Subject, triple: [0, 1, 4], row: 13 };
    let room =
        Room { entities: 7, relations: 3, candidates: Candidates::All, seed: RngKey::new(2), together: 20 };
    let candidates = |same| {
        let [group] = &room.groups(vec![question])[..] else { panic!("one group") };
        let scores: Vec<f32> = group.triples().map(score).collect();
        let stem = Stem { group, stem: 0, scores: &scores };
        stem.answered(&Stated::new(&corpus, same), 0)[0].filtered.candidates
    };
    assert_eq!(candidates(Same::Ids), candidates(Same::Texts) + 1);
}

#[test]
fn settings_that_ask_nothing_or_cannot_be_are_refused() {
    let refused = |config: Config| config.check().unwrap_err().to_string();
    let none = Config { slots: vec![], classification: false, ..Config::default() };
    assert!(refused(none).contains("nothing is asked"));
    let twice = Config { slots: vec![Slot::Object, Slot::Object], ..Config::default() };
    assert!(refused(twice).contains("names one twice"));
    let learned = Config { pooling: Some(Pooling::LearnedAttn), ..Config::default() };
    assert!(refused(learned).contains("expected cls, mean or max"));
    let idle = Config { pooling: Some(Pooling::Cls), ..Config::default() };
    assert!(refused(idle).contains("which compares none"));
    let of_relations =
        Config { candidates: Candidates::Sampled(3), slots: vec![Slot::Relation], ..Config::default() };
    assert!(refused(of_relations).contains("asks for none"));
    let drawn = Config { candidates: Candidates::Sampled(0), ..Config::default() };
    assert!(refused(drawn).contains("rank.candidates.sampled"));
    Config::default().check().unwrap();
    let stage = |name: &str| Base::Stage(name.to_owned());
    let retrain = retrain::Config::default();
    Config::default().trained(&stage("retrain"), None, Some(&retrain)).unwrap();
    let told = |config: &Config, base| config.trained(&base, None, Some(&retrain)).unwrap_err().to_string();
    assert!(told(&Config::default(), stage("encoder")).contains("add [retrain]"));
    let similar = Config { by: By::Similarity, ..Config::default() };
    similar.trained(&stage("encoder"), None, None).unwrap();
    let alphas = model::output::shards::Alphas::new([(Task::Relation, 1.0)]);
    let other = retrain::Config { alphas, ..retrain::Config::default() };
    let text = Config::default().trained(&stage("retrain"), None, Some(&other)).unwrap_err().to_string();
    assert!(text.contains("retrain.alphas.triplet is 0"), "{text}");
}
