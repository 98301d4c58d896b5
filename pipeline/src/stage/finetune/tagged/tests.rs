//! Rows, targets and scores of sentences as the reference codes have them.

use downstream::example::{Example, Kind, Measure, Tagged};
use tasks::token::encode::Case;

use super::*;

const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nno\npain\nwarfarin\n##s\n";

/// Sentences with tags of `O`, `B-x` and `I-x` by number, all of them to train on and to test on.
fn sentences(of: &[(&str, &[u32])], subwords: &str, prepared: &str, most: usize) -> Sentences {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocab.txt");
    base::whole::write_whole(&path, WORDS.as_bytes()).unwrap();
    let vocabulary = Vocabulary::load(&path, Case::Uncased).unwrap();
    let fixed = format!("max_tokens = {most}\nsubwords = \"{subwords}\"\nquirks = {{ {prepared} }}\n");
    let fixed: Fixed = toml::from_str(&fixed).unwrap();
    let example = |part: Part| {
        move |(place, (text, tags)): (usize, &(&str, &[u32]))| {
            let words = text.split(' ').map(str::to_owned).collect();
            let answer = Answer::Tags(Tagged { words, tags: tags.to_vec() });
            let (id, text) = (format!("{}-{place}", part.name()), (*text).to_owned());
            Example { id, part, text, pair: None, answer }
        }
    };
    let all = [Part::Train, Part::Test].into_iter().flat_map(|part| of.iter().enumerate().map(example(part)));
    let examples = Examples {
        name: "x".to_owned(),
        kind: Kind::Tags,
        classes: ["O", "B-x", "I-x"].map(str::to_owned).to_vec(),
        measure: Measure::EntityF1,
        negative_class: None,
        examples: all.collect(),
    };
    Sentences::new(examples, &vocabulary, &fixed).unwrap()
}

/// Token ids of each row of what is trained on, and the classes of its tokens by name.
fn trained(of: &Sentences) -> (Vec<usize>, Vec<Vec<String>>) {
    let items: Vec<usize> = (0..of.items()).collect();
    let batch = of.batch(0, &items).unwrap();
    let Targets::Tokens(targets) = batch.targets else { unreachable!("tags are asked for") };
    let name = |class: Option<u32>| {
        class.map_or_else(|| "-".to_owned(), |class| of.classes.names()[class as usize].clone())
    };
    (batch.rows.lengths, targets.into_iter().map(|row| row.into_iter().map(name).collect()).collect())
}

/// The score on the part `test` of what is said of its tokens, by the classes' names.
fn scored(of: &Sentences, said: &[&str]) -> Score {
    let class = |name: &&str| of.classes.names().iter().position(|known| known == name).unwrap();
    let logits = |class: usize| (0..of.classes.names().len()).map(move |at| f32::from(u8::from(at == class)));
    let outputs: Vec<Vec<f32>> = said.iter().map(|name| logits(class(name)).collect()).collect();
    of.score(Part::Test, &outputs).unwrap()
}

const TEXT: (&str, &[u32]) = ("no warfarins pain no", &[0, 1, 2, 0]);

#[test]
fn other_tokens_are_trained_to_be_what_the_released_codes_have() {
    let of = |subwords, prepared| trained(&sentences(&[TEXT], subwords, prepared, 16)).1.concat().join(" ");
    assert_eq!(of("first", ""), "- O B-x - I-x O -");
    assert_eq!(of("first", "tags = { others = \"later_and_special\" }"), "CLS O B-x X I-x O SEP");
    let bilou = "tags = { scheme = \"bilou\", others = \"special\" }";
    assert_eq!(of("all", bilou), "BERT_TOKEN O B-x B-x L-x O BERT_TOKEN");
    assert_eq!(of("last", "tags = { scheme = \"bilou\" }"), "- O - B-x L-x O -");
}

#[test]
fn rows_end_behind_words_outside_once_they_are_full_enough() {
    let text = ("no pain no pain no pain no", &[0, 0, 0, 1, 2, 2, 0][..]);
    // More than 4 tokens with `[CLS]` and `[SEP]`: behind the third word, and not within the entity.
    let (lengths, _) = trained(&sentences(&[text], "first", "full_behind = 4", 16));
    assert_eq!(lengths, [5, 6]);
    let (lengths, _) = trained(&sentences(&[text], "first", "full_behind = 5", 16));
    assert_eq!(lengths, [9], "the next word outside is the last one");
}

#[test]
fn pieces_that_are_too_long_are_left_out_and_no_others() {
    // Cut behind the second word: what is left has six words of an entity, and no row has room for more than five.
    let long = ("no no pain pain pain pain pain pain", &[0, 0, 1, 2, 2, 2, 2, 2][..]);
    let drop = "long_sentences = \"drop\", behind_outside = 6";
    let of = sentences(&[long, TEXT], "first", drop, 7);
    assert_eq!((of.items(), of.facts()["too_long_to_train_on"].clone()), (2, json!(1)));
    assert_eq!((of.facts()["train"].clone(), of.facts()["pieces_to_train_on"].clone()), (json!(2), json!(2)));
    let (lengths, _) = trained(&of);
    assert_eq!(lengths, [4, 7]);
    // Without the cut the sentence goes whole; to test on all of it is there.
    let of = sentences(&[long, TEXT], "first", "long_sentences = \"drop\"", 7);
    assert_eq!(trained(&of).0, [7]);
    let mut rows = of.framed().unwrap();
    of.push(Part::Test, 0, &mut rows).unwrap();
    assert_eq!(rows.rows.lengths, [7, 5]);
    // A single word of more tokens than that is too long as well.
    let of = sentences(&[("warfarins", &[0]), TEXT], "first", "long_sentences = { drop_above = 3 }", 16);
    assert_eq!((of.items(), of.facts()["too_long_to_train_on"].clone()), (0, json!(2)));
    // Left out above what rows have room for to be tested with.
    let of = sentences(&[long, TEXT], "first", "long_sentences = { drop_above = 7 }", 16);
    assert_eq!(trained(&of).0, [7]);
    let mut rows = of.framed().unwrap();
    of.push(Part::Test, 0, &mut rows).unwrap();
    assert_eq!(rows.rows.lengths, [10]);
}

#[test]
fn pieces_that_the_codes_cut_are_shown_one_by_one() {
    let text = ("no pain no pain no", &[0, 1, 0, 1, 0][..]);
    let of = sentences(&[text], "first", "behind_outside = 3", 16);
    assert_eq!(
        (of.items(), of.facts()["pieces_to_train_on"].clone(), of.facts()["train"].clone()),
        (2, json!(2), json!(1))
    );
    assert_eq!(of.batch(0, &[1]).unwrap().rows.lengths, [4]);
    let of = sentences(&[text], "first", "full_behind = 3", 16);
    assert_eq!(trained(&of).0, [5, 4]);
    assert_eq!(of.batch(0, &[0]).unwrap().rows.lengths, [5]);
    // A piece that is longer than a row stays together.
    let longer = ("no warfarins no pain no", &[0, 1, 0, 1, 0][..]);
    let of = sentences(&[longer], "first", "behind_outside = 3", 5);
    assert_eq!((of.items(), of.batch(0, &[0]).unwrap().rows.lengths), (2, vec![5, 3]));
    // Where nothing is cut by tags, a sentence of several rows stays together.
    let of = sentences(&[text], "first", "", 5);
    assert_eq!((of.items(), trained(&of).0), (1, vec![5, 4]));
}

#[test]
fn padding_is_trained_as_the_first_class_by_its_letters_where_the_code_does() {
    let bilou = "tags = { scheme = \"bilou\", others = \"special\" }, padding = \"trained\"";
    let of = sentences(&[TEXT], "all", bilou, 9);
    let batch = of.batch(0, &[0]).unwrap();
    assert_eq!((batch.rows.lengths.as_slice(), batch.rows.seen.as_slice()), (&[9][..], &[7][..]));
    assert_eq!(batch.rows.ids[7..], [0, 0]);
    assert_eq!(trained(&of).1.concat().join(" "), "BERT_TOKEN O B-x B-x L-x O BERT_TOKEN B-x B-x");
    let mut rows = of.framed().unwrap();
    of.push(Part::Test, 0, &mut rows).unwrap();
    assert!(rows.rows.seen.is_empty() && rows.rows.lengths == [7], "what is scored has none");
}

#[test]
fn pieces_are_scored_as_sentences_of_their_own() {
    let text = ("no pain no pain", &[0, 1, 0, 1][..]);
    let whole = scored(&sentences(&[text], "first", "", 16), &["O", "O", "B-x", "I-x", "I-x", "O"]);
    assert_eq!((whole.samples, whole.others["precision"], whole.others["recall"]), (1, 0.0, 0.0));
    // The same words in a piece of three and one of one: what went on over the cut begins anew.
    let of = sentences(&[text], "first", "behind_outside = 3", 16);
    let pieces = scored(&of, &["O", "O", "B-x", "I-x", "O", "O", "I-x", "O"]);
    assert_eq!((pieces.samples, pieces.others["precision"], pieces.others["recall"]), (1, 0.5, 0.5));
}

#[test]
fn a_class_of_no_word_counts_where_it_follows_an_entity() {
    let of = sentences(&[TEXT], "first", "tags = { others = \"later_and_special\" }", 16);
    let right = scored(&of, &["CLS", "O", "B-x", "X", "I-x", "O", "SEP"]);
    assert_eq!((right.value, right.samples), (1.0, 1));
    // The word behind the entity is said to be a later subword: an entity of no kind.
    let wrong = scored(&of, &["CLS", "O", "B-x", "X", "I-x", "X", "SEP"]);
    assert_eq!((wrong.others["precision"], wrong.others["recall"]), (0.5, 1.0));
}
