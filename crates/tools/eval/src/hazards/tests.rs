use super::*;
use indicatif::ProgressBar;
use stateplane_hazards::{Flow, Record, Rest, Sizes, Traffic};
use traces::Source;

/// 600 packets of three flows: long packets of two, and short ones of the third.
fn traces() -> Traces {
    let record = |number: u64| Record {
        at_ns: number * 100,
        bytes: if number.is_multiple_of(3) { 64 } else { 1400 },
        flow: Some(Flow {
            source: [10, 0, 0, (number % 3) as u8].into(),
            rest: Some(Rest {
                destination: [10, 0, 1, 1].into(),
                protocol: 17,
                ports: (1, 2),
            }),
        }),
    };
    let drawn = Traffic::Drawn {
        sizes: Sizes::new(vec![(64.0, 0.5), (1500.0, 1.0)]).unwrap(),
        popularity: None,
        packets: 500,
    };
    let source = |name: &str, traffic| Source {
        name: name.to_owned(),
        traffic,
    };
    Traces {
        backbone: Some(source("drawn", drawn)),
        middle: None,
        captures: vec![source(
            "three-flows",
            Traffic::recorded((0..600).map(record).collect()).unwrap(),
        )],
        missing: vec!["x.pcap.gz is compressed".to_owned()],
    }
}

#[test]
fn every_experiment_has_tables_and_plots_and_says_what_is_missing() {
    for experiment in Experiment::ALL {
        let bar = ProgressBar::hidden();
        let figure = experiments::run(experiment, &traces(), true, &bar).unwrap();
        assert!(figure.met(), "{figure}");
        assert!(!figure.plots.is_empty(), "{}", figure.id);
        assert!(figure.tables.iter().all(|table| !table.rows.is_empty()));
        assert_eq!(figure.missing, ["x.pcap.gz is compressed"]);
        assert_eq!(bar.position(), bar.length().unwrap(), "{}", figure.id);
    }
}

#[test]
fn at_alpha_0_all_packets_but_the_first_are_hazards_from_depth_2_on() {
    let bar = ProgressBar::hidden();
    let figure = experiments::run(Experiment::Fig1b, &traces(), true, &bar).unwrap();
    let row = |depth: f64| {
        let mut rows = figure.tables[0].rows.iter();
        let found = rows.find(|row| {
            row[0] == "three-flows".into() && row[1] == 0.0.into() && row[2] == depth.into()
        });
        found.unwrap()[4].clone()
    };
    assert_eq!(row(1.0), 0.0.into());
    assert_eq!(row(2.0), (100.0 * 599.0 / 600.0).into());
}

#[test]
fn a_folder_without_traces_gives_no_figure() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        figures: Vec::new(),
        quick: true,
        traces: folder.path().join("absent"),
        output: folder.path().join("out"),
        json: true,
    };
    assert_eq!(options.run().unwrap(), []);
    assert!(!folder.path().join("out").exists());
}
