use super::*;
use crate::table::Cell;

fn figure(experiment: Experiment) -> Figure {
    let bar = ProgressBar::hidden();
    let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/traces");
    let making = Making {
        quick: true,
        traces: Path::new(traces),
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

/// Numbers of a column, in the order of the rows.
fn column(figure: &Figure, table: usize, column: usize) -> Vec<f64> {
    let rows = figure.tables[table].rows.iter();
    let numbers = rows.map(|row| match row[column] {
        Cell::Number(number) => number,
        _ => panic!("{figure}"),
    });
    numbers.collect()
}

/// Latencies are of the machine at hand: what is claimed of them is the report's.
#[test]
fn reads_take_a_time_at_each_size() {
    let figure = figure(Experiment::Exp2);
    assert!(figure.met(), "{figure}");
    assert_eq!(figure.tables[0].rows.len(), 4);
    for latencies in 2..7 {
        let latencies = column(&figure, 0, latencies);
        assert!(latencies.iter().all(|us| *us > 0.0), "{figure}");
    }
}

#[test]
fn the_path_over_the_operating_system_is_its_parts() {
    let figure = figure(Experiment::Fig1a);
    let [pcie, network, both] = [1, 2, 3].map(|at| column(&figure, 0, at));
    for ((pcie, network), both) in pcie.iter().zip(&network).zip(&both) {
        assert!(
            *network > 0.0 && (pcie + network - both).abs() < 1e-9,
            "{figure}"
        );
    }
    assert!((pcie[1] / pcie[0] - 4.0).abs() < 1e-9, "{figure}");
}

#[test]
fn heavy_hitters_are_missed_with_latency_and_with_loss() {
    let figure = figure(Experiment::Fig2);
    for table in 0..2 {
        let missed = column(&figure, table, 2);
        let of_drawn = figure.tables[table].rows.iter();
        let count = of_drawn.filter(|row| row[0] == "drawn".into()).count();
        let drawn = &missed[..count];
        assert!(drawn[0] < 1.0 && drawn[count - 1] > 10.0, "{figure}");
        assert!(drawn.is_sorted(), "{figure}");
    }
}

#[test]
fn little_loss_is_little_error() {
    let figure = figure(Experiment::Fig3);
    assert!(figure.claims[0].met, "{figure}");
    let divergence = column(&figure, 0, 2);
    assert_eq!(divergence[0], 0.0, "{figure}");
    assert!(divergence[3] > 5.0 && divergence.len() >= 4, "{figure}");
    for of_application in 3..7 {
        let error = column(&figure, 0, of_application);
        assert!(error[0] == 0.0 && error[3] > 1.0, "{figure}");
    }
}

#[test]
fn writes_are_whole_and_once_under_loss_and_resets_are_flat() {
    let figure = figure(Experiment::Exp4);
    assert!(figure.met(), "{figure}");
    let again = column(&figure, 1, 5);
    assert_eq!(again[0], 0.0, "without loss nothing is sent again");
    assert!(again[2] > 100.0, "{figure}");
    let messages = column(&figure, 0, 4);
    assert_eq!(
        messages[0], 27.0,
        "256 values, ten a message, and the cut: {figure}"
    );
}

#[test]
fn forwarding_is_measured_with_and_without_sync() {
    let figure = figure(Experiment::Exp6);
    assert_eq!(figure.tables[1].rows.len(), 4);
    for at in [1, 3, 5] {
        assert!(
            column(&figure, 1, at).iter().all(|it| *it > 0.0),
            "{figure}"
        );
    }
    assert!(
        column(&figure, 2, 1)
            .iter()
            .all(|packets| *packets >= 16_384.0),
        "{figure}"
    );
}

#[test]
fn a_staged_write_costs_hashpipe_nothing_and_one_value_after_the_other_does() {
    let figure = figure(Experiment::Exp5);
    assert!(figure.met(), "{figure}");
    let rows = figure.tables[0].rows.iter();
    let slow = rows.filter(|row| row[0] == "operating system".into());
    let (found, ideal) = (column(&figure, 0, 7), column(&figure, 0, 8));
    let worse = found
        .iter()
        .zip(&ideal)
        .filter(|(found, ideal)| *found > *ideal);
    assert!(worse.count() >= slow.count(), "{figure}");
}

#[test]
fn applications_are_read_and_reset_in_time() {
    let figure = figure(Experiment::Exp7);
    assert!(figure.met(), "{figure}");
    assert!(
        column(&figure, 0, 4).iter().all(|used| *used > 0.0),
        "{figure}"
    );
    // A read of all values is a round trip at least, and faster than one value after the other.
    let (whole, one_by_one) = (column(&figure, 0, 6), column(&figure, 0, 11));
    assert!(
        whole
            .iter()
            .zip(&one_by_one)
            .all(|(ms, slow)| *ms > 0.1 && ms < slow),
        "{figure}"
    );
}

#[test]
fn sketches_are_collected_whole() {
    let figure = figure(Experiment::Exp8);
    assert!(figure.met(), "{figure}");
    let rows = &figure.tables[1].rows;
    let lossy = rows.iter().filter(|row| row[1] == "mirroring".into());
    let lost = lossy.map(|row| row[3].clone());
    assert!(
        lost.clone().count() == 5 && lost.into_iter().all(|it| it != 0.0.into()),
        "{figure}"
    );
}

#[test]
fn detections_on_windows_are_those_of_the_ideal() {
    let figure = figure(Experiment::Exp9);
    assert!(figure.met(), "{figure}");
    let drawn = figure.tables[0]
        .rows
        .iter()
        .filter(|row| row[0] == "drawn".into());
    let there = drawn.flat_map(|row| &row[8..12]);
    assert!(there.clone().count() == 8, "{figure}");
    assert!(
        there
            .into_iter()
            .all(|it| matches!(it, Cell::Number(count) if *count >= 1.0)),
        "{figure}"
    );
}

#[test]
fn floods_are_blocked_and_nobody_else() {
    let figure = figure(Experiment::Exp10);
    assert!(figure.met(), "{figure}");
    let passed = column(&figure, 1, 5);
    assert!(passed[0] < passed[2], "{figure}");
}
