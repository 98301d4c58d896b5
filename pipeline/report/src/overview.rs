//! The page about a whole output folder: the graph in short, how trainings go, what models reached, and where everything else is.
//!
//! [`page()`] is a pure function of [`Overview`]. While a run lasts, it is written anew from time to time, and browsers load it again.

use maud::{Markup, html};
use serde::Deserialize;

use super::draft::{Draft, Page};
use super::grafting::curve;
use super::grafting::facts::{Curve, Row};
use super::number::{compact, fixed, thousands};
use super::page as of_graph;
use super::table::{captioned, plain, text};
use super::{FEWEST_SEEDS, Input, lines};

/// Groups of trainings beyond which those that do not run are folded up.
const OPEN: usize = 4;

/// Trainings beyond which their table is folded up.
const ROWS: usize = 8;

/// Seconds after which a browser loads the page of a running run again.
const REFRESH: u32 = 5;

/// What is known of an output folder.
#[derive(Debug, Clone, Default)]
pub struct Overview<'a> {
    /// The page's title.
    pub title: &'a str,
    /// The graph, if it has been measured.
    pub graph: Option<Input<'a>>,
    /// What is worked on at this moment; empty once a run has ended.
    pub running: Vec<Running>,
    /// Trainings that have begun.
    pub trainings: Vec<Training>,
    /// What fine-tuned models reached.
    pub scores: Vec<Score>,
    /// Where answers stand that a graph was asked for.
    pub ranks: Vec<Ranks>,
    /// Other pages and files, by paths from the page.
    pub pages: Vec<Link>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// A stage at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its name.
    pub stage: String,
    /// Rows or steps done.
    pub done: u64,
    /// How many there are in all; 0 if that is not known.
    pub total: u64,
    /// What they are called.
    pub unit: &'static str,
}

/// A training.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// The stage.
    pub stage: String,
    /// What it has in common with its other seeds, which share its plots.
    pub group: String,
    /// What it measures over its steps: `loss`, `learning rate`, `accuracy` and so on, each of one or several things.
    pub curves: Vec<Measured>,
    /// Whether it has ended.
    pub state: State,
    /// The path of its model's card from the page, if there is one.
    pub card: Option<String>,
}

/// How far a training is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is finished.
    Ended,
    /// It was stopped, or works at this moment.
    Begun,
}

/// A line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What is measured.
    pub what: &'static str,
    /// Of which task; empty if of the whole training.
    pub task: String,
    /// Steps and values.
    pub points: Vec<(f64, f64)>,
}

/// What models that were fine-tuned alike reached on a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The benchmark.
    pub benchmark: String,
    /// How they were fine-tuned.
    pub how: String,
    /// What they began with.
    pub began_with: String,
    /// What is measured.
    pub metric: String,
    /// The mean over seeds.
    pub mean: f64,
    /// Where the mean over all seeds lies.
    pub interval: Option<[f64; 2]>,
    /// How many seeds there are.
    pub seeds: usize,
}

/// Where answers stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// What was asked for.
    pub asked_for: String,
    /// Over filtered ranks.
    pub means: Means,
}

/// Means over ranks, as `rank.json` has them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Means {
    /// How many ranks they are of.
    pub ranks: u64,
    /// Mean reciprocal rank.
    pub mrr: f64,
    /// Mean rank.
    pub mr: f64,
    /// Share of ranks up to 1.
    pub hits_1: f64,
    /// Share of ranks up to 3.
    pub hits_3: f64,
    /// Share of ranks up to 10.
    pub hits_10: f64,
}

/// A page or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its path from the page.
    pub to: String,
    /// What it is called.
    pub title: String,
    /// What it has.
    pub about: String,
}

/// The page of `overview`; equal contents give equal bytes.
#[must_use]
pub fn page(overview: &Overview<'_>) -> Page {
    let mut draft = Draft::new();
    if !overview.running.is_empty() {
        draft.live(status(&overview.running), REFRESH);
    }
    let mut tiles = Vec::new();
    if let Some(graph) = &overview.graph {
        of_graph::graph_in_short(graph, &mut draft);
        tiles.extend(of_graph::tiles(graph));
    }
    trainings(overview, &mut draft);
    scores(overview, &mut draft);
    ranks(overview, &mut draft);
    pages(overview, &mut draft);
    if !overview.trainings.is_empty() {
        let ended = overview.trainings.iter().filter(|training| training.state == State::Ended).count();
        tiles.push(("trainings ended", format!("{ended} of {}", overview.trainings.len())));
    }
    draft.finish(overview.title, &tiles, lines::STYLE)
}

fn status(running: &[Running]) -> Markup {
    html! {
        b { "At work" } ": "
        @for (number, Running { stage, done, total, unit }) in running.iter().enumerate() {
            @if number > 0 { "; " }
            (text(stage))
            @if *total > 0 { " (" (thousands(*done)) " of " (thousands(*total)) " " (unit) ")" }
        }
        ". " span.soft { "This page is written anew while the run lasts and loads itself again." }
    }
}

fn trainings(overview: &Overview<'_>, draft: &mut Draft) {
    if overview.trainings.is_empty() {
        return;
    }
    let lead = "Loss, learning rate and accuracy over steps, from the first step on; of several seeds the thick line is the mean. TensorBoard shows the same numbers.";
    draft.section("training", "Training", lead);
    draft.put(table(&overview.trainings));
    let mut groups: Vec<(&str, Vec<&Training>)> = Vec::new();
    for training in &overview.trainings {
        match groups.iter_mut().find(|(group, _)| *group == training.group) {
            Some((_, of)) => of.push(training),
            None => groups.push((&training.group, vec![training])),
        }
    }
    let few = groups.len() <= OPEN;
    for (number, (group, of)) in groups.into_iter().enumerate() {
        let runs = |training: &&Training| overview.running.iter().any(|at| at.stage == training.stage);
        let plots = plots(number, group, &of);
        if few || of.iter().any(runs) {
            draft.heading(group);
            draft.plots(plots);
        } else {
            draft.folded(group, plots);
        }
    }
}

/// Where every training stands.
fn table(trainings: &[Training]) -> Markup {
    let columns = [
        ("Training", 'w'),
        ("Steps", 'n'),
        ("First loss", 'n'),
        ("Last loss", 'n'),
        ("Best held-out", 'n'),
        ("", 'w'),
    ];
    let row = |training: &Training| {
        let of = |what: &str| training.curves.iter().find(|curve| curve.what == what);
        let loss = of("loss").map_or(&[][..], |curve| &curve.points);
        let value = |point: Option<&(f64, f64)>| point.map_or_else(|| "–".to_owned(), |(_, y)| fixed(*y, 4));
        let held_out = of("held-out loss")
            .map(|curve| curve.points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min));
        let dev = of("dev score")
            .map(|curve| curve.points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max));
        let best = match (held_out, dev) {
            (Some(loss), _) if loss.is_finite() => format!("loss {}", fixed(loss, 4)),
            (_, Some(score)) if score.is_finite() => format!("score {}", fixed(score, 4)),
            _ => "–".to_owned(),
        };
        vec![
            match &training.card {
                Some(card) => html! { a href=(card) { (text(&training.stage)) } },
                None => text(&training.stage),
            },
            plain(loss.last().map_or_else(|| "0".to_owned(), |(step, _)| compact(*step))),
            plain(value(loss.first())),
            plain(value(loss.last())),
            plain(best),
            plain(if training.state == State::Ended { "ended" } else { "not ended" }),
        ]
    };
    let caption = "Where every training stands; a name leads to the model's card";
    let table = captioned(caption, &columns, trainings.iter().map(row));
    match trainings.len() {
        0..=ROWS => table,
        many => {
            html! { details { summary { "All " (many) " trainings, and their models' cards" } (table) } "\n" }
        }
    }
}

/// One plot for each thing that was measured, with all seeds of a group in it.
fn plots(number: usize, group: &str, trainings: &[&Training]) -> Vec<super::svg::Plot> {
    let mut curves = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for measured in trainings.iter().flat_map(|training| &training.curves) {
        // A step is no curve yet.
        if measured.points.is_empty() {
            continue;
        }
        let name = if measured.task.is_empty() { "all tasks" } else { &measured.task };
        if !rows.iter().any(|row| row.name == name) {
            rows.push(Row { name: name.to_owned(), title: name.to_owned(), mask: None });
        }
        curves.push(Curve {
            name: name.to_owned(),
            task: group.to_owned(),
            x: "steps".to_owned(),
            y: measured.what.to_owned(),
            points: measured.points.clone(),
        });
    }
    curve::plots(&curves, &rows, &format!("training-{number:02}"))
}

fn scores(overview: &Overview<'_>, draft: &mut Draft) {
    if overview.scores.is_empty() {
        return;
    }
    let lead = "What fine-tuned models reached on the part `test`, times 100: the mean over seeds, and from 3 seeds on its 95 % interval.";
    draft.section("scores", "Scores", lead);
    let columns = [
        ("Benchmark", 'w'),
        ("Fine-tuned", 'w'),
        ("Began with", 'w'),
        ("Metric", 'w'),
        ("Mean", 'n'),
        ("95 % interval", 'n'),
        ("Seeds", 'n'),
    ];
    let row = |score: &Score| {
        let interval = score
            .interval
            .filter(|_| score.seeds >= FEWEST_SEEDS)
            .map(|ends| ends.map(|end| fixed(100.0 * end, 1)));
        vec![
            text(&score.benchmark),
            text(&score.how),
            text(&score.began_with),
            text(&score.metric),
            plain(fixed(100.0 * score.mean, 1)),
            plain(interval.map_or_else(|| "–".to_owned(), |[low, high]| format!("[{low}, {high}]"))),
            plain(score.seeds),
        ]
    };
    draft.put(captioned("Scores on the part `test`", &columns, overview.scores.iter().map(row)));
}

fn ranks(overview: &Overview<'_>, draft: &mut Draft) {
    if overview.ranks.is_empty() {
        return;
    }
    let lead = "Where the answers of held-out triples stand among all that could answer, without others that the graph states; all but the mean rank times 100.";
    draft.section("ranks", "Link prediction", lead);
    let columns = [
        ("Asked for", 'w'),
        ("Questions", 'n'),
        ("MRR", 'n'),
        ("MR", 'n'),
        ("Hits@1", 'n'),
        ("Hits@3", 'n'),
        ("Hits@10", 'n'),
    ];
    let row = |Ranks { asked_for, means }: &Ranks| {
        let [mrr, one, three, ten] = [means.mrr, means.hits_1, means.hits_3, means.hits_10]
            .map(|share| plain(fixed(100.0 * share, 1)));
        let (questions, mr) = (plain(thousands(means.ranks)), plain(fixed(means.mr, 2)));
        vec![text(asked_for), questions, mrr, mr, one, three, ten]
    };
    draft.put(captioned("Filtered ranks", &columns, overview.ranks.iter().map(row)));
}

fn pages(overview: &Overview<'_>, draft: &mut Draft) {
    draft.section("pages", "Pages and files", "What else this folder has for people to read.");
    if overview.pages.is_empty() {
        draft.none("Nothing yet. `engraft run` fills this folder.");
    } else {
        draft.put(html! {
            ul {
                @for Link { to, title, about } in &overview.pages {
                    li { a href=(to) { (text(title)) } ": " (text(about)) }
                }
            }
            "\n"
        });
    }
    for problem in &overview.problems {
        draft.none(problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<script>alert('x')</script>";

    fn training(stage: &str, state: State) -> Training {
        let points: Vec<(f64, f64)> = (1..=9).map(|step| (f64::from(step), 1.0 / f64::from(step))).collect();
        let of = |what, task: &str| Measured { what, task: task.to_owned(), points: points.clone() };
        let curves =
            vec![of("loss", ""), of("learning rate", ""), of("accuracy", "subject"), of("accuracy", HOSTILE)];
        Training {
            stage: stage.to_owned(),
            group: "retrain".to_owned(),
            curves,
            state,
            card: Some(format!("{stage}/model/README.md")),
        }
    }

    fn score(seeds: usize) -> Score {
        Score {
            benchmark: HOSTILE.to_owned(),
            how: "alone".to_owned(),
            began_with: "retrain".to_owned(),
            metric: "f1".to_owned(),
            mean: 0.7,
            interval: Some([0.61, 0.79]),
            seeds,
        }
    }

    fn overview(seeds: usize) -> Overview<'static> {
        let pages = vec![Link {
            to: "report/index.html".to_owned(),
            title: "The graph".to_owned(),
            about: HOSTILE.to_owned(),
        }];
        Overview {
            title: HOSTILE,
            trainings: vec![training("retrain", State::Begun)],
            scores: vec![score(seeds)],
            ranks: vec![Ranks {
                asked_for: HOSTILE.to_owned(),
                means: Means {
                    ranks: 1322,
                    mrr: 0.7882,
                    mr: 2.257,
                    hits_1: 0.677,
                    hits_3: 0.876,
                    hits_10: 0.973,
                },
            }],
            pages,
            ..Overview::default()
        }
    }

    #[test]
    fn training_is_shown_with_loss_rate_and_accuracy_of_each_task() {
        let html = page(&overview(3)).html;
        for shown in [
            "Loss: retrain",
            "Learning rate: retrain",
            "Accuracy: retrain",
            ">subject<",
            "not ended",
            ">2.26<",
            ">97.3<",
        ] {
            assert!(html.contains(shown), "{shown}");
        }
        assert!(!html.contains("http-equiv") && !html.contains("<script"), "nothing runs");
        assert!(html.contains("<a href=\"report/index.html\">The graph</a>"));
        assert!(html.contains("<a href=\"retrain/model/README.md\">retrain</a>"));
        assert_eq!(html, page(&overview(3)).html);
    }

    #[test]
    fn a_running_run_says_so_and_is_loaded_again() {
        let running = vec![Running { stage: "retrain".to_owned(), done: 340, total: 1900, unit: "steps" }];
        let html = page(&Overview { running, ..overview(3) }).html;
        assert!(
            html.contains("retrain (340 of 1,900 steps)")
                && html.contains("http-equiv=\"refresh\" content=\"5\"")
        );
    }

    #[test]
    fn fewer_than_three_seeds_have_no_interval() {
        assert!(page(&overview(3)).html.contains("[61.0, 79.0]"));
        for seeds in [1, 2] {
            let html = page(&overview(seeds)).html;
            assert!(!html.contains("[61.0") && html.contains(">70.0<"));
        }
    }

    #[test]
    fn many_trainings_are_folded_but_for_those_that_run() {
        let of = |number: usize| {
            let mut of = training(&format!("finetune-{number}"), State::Ended);
            of.group = of.stage.clone();
            of
        };
        let trainings = (0..6).map(of).collect::<Vec<_>>();
        let running = vec![Running { stage: "finetune-3".to_owned(), done: 1, total: 0, unit: "steps" }];
        let html = page(&Overview { trainings, running, ..Overview::default() }).html;
        assert_eq!(html.matches("<details>").count(), 5);
        assert!(html.contains("<h3>finetune-3</h3>") && html.contains("6 of 6"));
    }
}
