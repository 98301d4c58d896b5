//! What became of every row of every source, as bars.

use serde_json::Value;

use super::bars::{Bar, Bars, Lengths};
use super::number::thousands;
use super::svg::Plot;

/// A plot for each file of each source: rows read, dropped for each reason, kept; and one for each source of what merging made of the
/// kept ones. Reasons that dropped nothing are named below it.
#[must_use]
pub fn plots(funnel: &Value) -> Vec<Plot> {
    let mut plots = Vec::new();
    for source in list(funnel, "read") {
        let name = text(source, "source");
        for tally in source.get("triples").into_iter().chain(list(source, "supporting")) {
            plots.push(file(plots.len(), name, tally));
        }
        if let Some(stated) = funnel.pointer("/merged/sources").and_then(|sources| sources.get(name)) {
            plots.push(merging(plots.len(), name, stated));
        }
    }
    plots
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("unnamed")
}

fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn bar(name: &str, count: u64, colour: u8) -> Bar {
    Bar { name: name.to_owned(), count, colour }
}

fn file(number: usize, source: &str, tally: &Value) -> Plot {
    let mut bars = vec![bar("read", count(tally, "read"), 0)];
    let mut idle = Vec::new();
    for (reason, dropped) in tally.get("dropped").and_then(Value::as_object).into_iter().flatten() {
        match dropped.as_u64().unwrap_or(0) {
            0 => idle.push(words(reason)),
            rows => bars.push(bar(&format!("− {}", words(reason)), rows, 1)),
        }
    }
    bars.push(bar("kept", count(tally, "kept"), 2));
    let (bytes, lines) = (thousands(count(tally, "bytes")), thousands(count(tally, "lines")));
    let mut description = format!("{bytes} bytes in {lines} lines.");
    if !idle.is_empty() {
        description.push_str(&format!(" Nothing was dropped as {}.", idle.join(", ")));
    }
    draw(number, (&format!("{source}: {}", text(tally, "file")), &description), bars)
}

fn merging(number: usize, source: &str, stated: &Value) -> Plot {
    let mut bars = vec![bar("kept", count(stated, "rows"), 0)];
    for reason in ["self_loops", "below_min_relation_count", "merged"] {
        if count(stated, reason) > 0 {
            bars.push(bar(&format!("− {}", words(reason)), count(stated, reason), 1));
        }
    }
    bars.push(bar("different triples", count(stated, "distinct"), 2));
    let (turned, exchanged) = (thousands(count(stated, "turned")), thousands(count(stated, "exchanged")));
    let description = format!(
        "What merging made of the kept rows. {turned} were inverted into the relation whose inverse they state, {exchanged} exchanged in a symmetric relation."
    );
    draw(number, (&format!("{source}: merging"), &description), bars)
}

fn words(reason: &str) -> String {
    reason.replace('_', " ")
}

fn draw(number: usize, title: (&str, &str), bars: Vec<Bar>) -> Plot {
    let name = format!("funnel-{number:02}");
    Bars { name: &name, title, unit: "rows", bars, lengths: Lengths::Linear }.draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_file_has_its_plot_and_every_reason_its_place() {
        let funnel = json!({"merged": {"sources": {"umls": {"rows": 900, "merged": 100, "distinct": 800}}}, "read": [{
            "source": "umls",
            "triples": {"file": "MRREL.RRF", "bytes": 9000, "lines": 1200, "read": 1200, "kept": 900,
                        "dropped": {"suppressed": 300, "unlabelled": 0}},
            "supporting": [{"file": "MRCONSO.RRF", "bytes": 1, "lines": 1, "read": 1, "kept": 1, "dropped": {}}],
        }]});
        let plots = plots(&funnel);
        assert_eq!(
            plots.iter().map(|plot| plot.name.as_str()).collect::<Vec<_>>(),
            ["funnel-00", "funnel-01", "funnel-02"]
        );
        assert_eq!(plots[0].title, "umls: MRREL.RRF");
        assert_eq!(plots[0].description, "9,000 bytes in 1,200 lines. Nothing was dropped as unlabelled.");
        assert!(plots[0].inline().contains("− suppressed: 300"));
        assert!(
            plots[2].inline().contains("different triples: 800") && !plots[2].inline().contains("self loops")
        );
    }

    #[test]
    fn a_funnel_of_another_shape_shows_what_it_has() {
        assert!(plots(&json!({})).is_empty());
        assert_eq!(plots(&json!({"read": [{"triples": {}}]})).len(), 1);
    }
}
