//! The model as JSON: a line for scripts, and a history for the page.

use crate::look::{GroupLook, Row};
use crate::model::{Group, Model};
use crate::plot::Plot;
use serde_json::{Map, Value, json};

/// Samples that the page draws.
const DRAWN: usize = 240;

/// The last look as an object: numbers of [`Plot`] by name, promises, rows. Numbers that are
/// unbounded or not known are null.
pub fn line(model: &Model) -> Value {
    let groups: Vec<Value> = model.groups.iter().map(group).collect();
    json!({
        "at_us": model.at_us,
        "packets": model.packets,
        "packets_per_s": model.rate,
        "speed": model.speed,
        "trouble": model.trouble,
        "groups": groups,
    })
}

fn group(group: &Group) -> Value {
    let GroupLook {
        name,
        locations,
        told,
        unsent,
        queued,
        places,
        sent,
        lost,
        missing,
        off,
        finding,
        threshold,
        rows,
    } = &group.look;
    let told = told.map(|told| {
        json!({
            "bound": told.bound,
            "all_but": told.all_but,
            "within": told.within,
            "age_us": told.age_us,
            "generation": told.generation,
        })
    });
    json!({
        "name": name,
        "locations": locations,
        "told": told,
        "unsent": unsent,
        "ring": { "queued": queued, "places": places },
        "sent": sent,
        "lost": lost,
        "missing": missing,
        "lost_per_s": group.value(Plot::Lost),
        "sent_per_s": group.value(Plot::Sent),
        "off": off,
        "finding": finding.name(),
        "threshold": threshold,
        "rows": rows.iter().map(row).collect::<Vec<Value>>(),
    })
}

fn row(row: &Row) -> Value {
    json!({
        "name": row.name,
        "estimate": row.estimate,
        "low": row.low,
        "high": row.high,
        "heavy": row.verdict.map(stateplane_sketch::Verdict::name),
        "count": row.count,
    })
}

/// The last look, and behind it the history of each group's plots, for the page.
pub fn history(model: &Model) -> Value {
    let plots = Plot::ALL.map(|plot| json!({ "name": plot.name(), "meaning": plot.meaning() }));
    let histories: Vec<Value> = model.groups.iter().map(samples).collect();
    let title = &model.title;
    json!({
        "title": [title.program, title.place, title.traffic],
        "plots": plots,
        "now": line(model),
        "histories": histories,
    })
}

fn samples(group: &Group) -> Value {
    let left_out = group.samples.len().saturating_sub(DRAWN);
    let drawn = || group.samples.iter().skip(left_out);
    let plots = Plot::ALL.map(|plot| {
        let values: Vec<Value> = drawn().map(|it| it.value(plot).into()).collect();
        (plot.name().to_owned(), Value::from(values))
    });
    let at: Vec<u64> = drawn().map(|it| it.at_us).collect();
    let off: Vec<Option<f64>> = drawn().map(|it| it.off).collect();
    json!({ "at_us": at, "values": Map::from_iter(plots), "off": off })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::{Look, Promise, Title};
    use stateplane_sketch::Verdict;

    #[test]
    fn what_is_not_known_is_null() {
        let mut model = Model::new(Title::default());
        let told = Promise {
            all_but: 3,
            within: 8,
            ..Promise::default()
        };
        model.take(Look {
            at_us: 500,
            groups: vec![GroupLook {
                name: "flows".to_owned(),
                told: Some(told),
                rows: vec![Row {
                    name: "10.0.0.1".to_owned(),
                    low: 4,
                    verdict: Some(Verdict::Possibly),
                    ..Row::default()
                }],
                ..GroupLook::default()
            }],
            ..Look::default()
        });
        let said = line(&model);
        let group = &said["groups"][0];
        assert_eq!(group["told"]["bound"], Value::Null);
        assert_eq!(group["told"]["all_but"], 3);
        assert_eq!(group["rows"][0]["high"], Value::Null);
        assert_eq!(group["rows"][0]["heavy"], "possibly");
        let all = history(&model);
        assert_eq!(all["histories"][0]["values"]["t"], json!([8.0]));
        assert_eq!(all["histories"][0]["values"]["E"], json!([null]));
        assert_eq!(all["plots"][0]["name"], "E");
    }
}
