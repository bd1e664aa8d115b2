use super::*;
use crate::table::Cell;

fn figure(experiment: Experiment) -> Figure {
    let bar = ProgressBar::hidden();
    let making = Making {
        quick: true,
        bar: &bar,
    };
    let figure = making.figure(experiment).unwrap();
    println!("{figure}");
    assert!(!figure.plots.is_empty(), "{}", figure.id);
    assert!(figure.tables.iter().all(|table| !table.rows.is_empty()));
    figure
}

#[test]
fn mirroring_loses_what_exceeds_the_link() {
    assert!(figure(Experiment::Fig1b).met());
}

#[test]
fn sync_adds_memory_and_code() {
    let figure = figure(Experiment::Exp1);
    for row in &figure.tables[0].rows {
        let (Cell::Number(code), Cell::Number(seen)) = (&row[2], &row[4]) else {
            panic!("{figure}");
        };
        assert!(seen > code, "{figure}");
        assert!(
            matches!(row[5], Cell::Number(times) if times > 1.0),
            "{figure}"
        );
    }
}

#[test]
fn at_five_times_its_budget_sync_loses_nothing_and_its_bounds_are_true() {
    let figure = figure(Experiment::Exp3);
    assert!(figure.met(), "{figure}");
    let rows = figure.tables[0].rows.iter();
    let lossy = rows.filter(|row| row[0] != "sync".into() && row[4] != 0.0.into());
    assert!(lossy.count() > 0, "the comparators lose updates: {figure}");
}
