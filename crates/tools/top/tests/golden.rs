//! Pictures beside their golden texts: `golden/NAME.txt`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p stateplane-top --test golden` writes the files anew; look at
//! the difference before you commit it.
#![allow(clippy::disallowed_methods, reason = "goldens are files")]

use stateplane_sketch::Verdict;
use stateplane_top::{
    Finding, GroupLook, Look, Model, Paint, Press, Promise, Row, Title, painted, svg, text,
};
use std::fs;
use std::path::Path;

const PLAIN: Paint = Paint { colours: false };

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, actual).expect("it is written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{name} differs:\n{actual}");
}

fn row(at: u64, estimate: u64, threshold: u64) -> Row {
    let (low, high) = (estimate - estimate / 4, estimate + 120);
    Row {
        name: format!("10.1.{at}.7:{}>192.168.3.{at}:53/17", 1_024 + at * 313),
        estimate,
        low,
        high: Some(high),
        verdict: Some(if low > threshold {
            Verdict::Certainly
        } else {
            Verdict::Possibly
        }),
        count: Some(estimate - 20),
    }
}

/// The look at a moment: a wave of load, a loss, and a register that nobody follows yet.
fn look(at: u64) -> Look {
    let wave = at % 24;
    let sent: u64 = (0..=at).map(|at| 20_000 + at % 24 * 1_500).sum();
    let flows = GroupLook {
        name: "flows".to_owned(),
        locations: 3_073,
        told: Some(Promise {
            bound: Some(40 + wave * wave),
            all_but: wave * 3,
            within: wave,
            age_us: 700 + wave * 90,
            generation: 1,
        }),
        unsent: Some(30 + wave * wave / 2),
        queued: (wave * 11) as u32,
        places: Some(8_192),
        sent,
        lost: sent / 100 * u64::from(at > 30),
        off: Some(20 + wave * wave / 2),
        finding: Finding::HeavyHitters,
        threshold: Some(1_000),
        rows: (1..=20)
            .map(|rank| row(rank, 20_500 / rank, 1_000))
            .collect(),
        ..GroupLook::default()
    };
    let incomplete = GroupLook {
        name: "sources".to_owned(),
        locations: 3_073,
        ..GroupLook::default()
    };
    Look {
        at_us: at * 500_000,
        packets: Some(at * 50_000),
        speed: Some(0.8),
        trouble: None,
        groups: vec![flows, incomplete],
    }
}

fn model(looks: u64) -> Model {
    let mut model = Model::new(Title {
        program: "count-min".to_owned(),
        place: "a switch in this process".to_owned(),
        traffic: "16384 flows by Zipf's law, seed 1".to_owned(),
    });
    (0..looks).for_each(|at| model.take(look(at)));
    model
}

fn shown(model: &Model, size: (u16, u16)) -> String {
    text(&painted(model, size, PLAIN))
}

#[test]
fn pictures_of_two_sizes() {
    let mut model = model(90);
    compare("80x24.txt", &shown(&model, (80, 24)));
    compare("120x40.txt", &shown(&model, (120, 40)));
    model.press(Press::Plot(5));
    model.press(Press::Pause);
    compare("120x40-ring.txt", &shown(&model, (120, 40)));
}

#[test]
fn a_view_that_is_incomplete_and_an_engine_that_is_gone() {
    let mut model = model(3);
    model.press(Press::NextGroup);
    compare("incomplete.txt", &shown(&model, (80, 24)));
    model.take(Look {
        at_us: 2_000_000,
        trouble: Some("no engine answers at 127.0.0.1:9560".to_owned()),
        ..Look::default()
    });
    model.press(Press::PreviousGroup);
    compare("trouble.txt", &shown(&model, (80, 24)));
}

#[test]
fn an_explanation_covers_the_picture() {
    let mut model = model(3);
    model.press(Press::Help);
    compare("help.txt", &shown(&model, (80, 24)));
}

#[test]
fn locations_without_a_bound_have_open_intervals() {
    let mut model = Model::new(Title::default());
    let row = |at: u64| Row {
        name: format!("location {at}"),
        estimate: 900 / (at + 1),
        low: 0,
        ..Row::default()
    };
    model.take(Look {
        at_us: 1,
        groups: vec![GroupLook {
            name: "packets".to_owned(),
            locations: 65_536,
            told: Some(Promise::default()),
            rows: (0..5).map(row).collect(),
            ..GroupLook::default()
        }],
        ..Look::default()
    });
    compare("locations.txt", &shown(&model, (80, 24)));
}

/// Every size, with every part: nothing is drawn outside.
#[test]
fn no_size_is_too_small_or_too_large() {
    let mut model = model(40);
    for helps in [false, true] {
        if helps {
            model.press(Press::Help);
        }
        for (columns, lines) in [
            (1, 1),
            (59, 16),
            (60, 15),
            (60, 16),
            (61, 43),
            (109, 46),
            (500, 150),
        ] {
            let picture = shown(&model, (columns, lines));
            assert_eq!(picture.lines().count(), usize::from(lines));
        }
    }
}

#[test]
fn colours_change_no_letter() {
    let model = model(90);
    let coloured = painted(&model, (120, 40), Paint { colours: true });
    assert_eq!(text(&coloured), shown(&model, (120, 40)));
    let svg = svg(&coloured);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("#39c5cf") && svg.contains("#ff7b72"), "{svg}");
}
