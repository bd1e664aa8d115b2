use super::super::packets::Source;
use super::super::plane::Plane;
use super::super::viewed::shipped;
use super::*;

const SETUP: Setup = Setup {
    rate: 60.0,
    delay_us: 50,
    turn_us: 2,
    window_us: 250,
    step_us: 2,
};

const MACROS: [(&str, u64); 3] = [
    ("COUNT_MIN_COLUMN_BITS", 7),
    ("COUNT_MIN_PARTNER_BITS", 6),
    ("COUNT_MIN_FILTER_BITS", 12),
];

fn bed() -> Collected {
    let text = shipped("apps/count-min/count_min.p4").unwrap();
    let viewed = Viewed::new("count-min", text, &MACROS, &[]).unwrap();
    Collected::new(&viewed, SETUP).unwrap()
}

/// A window says what the data plane held at its cut, which is what a sketch in memory holds that
/// counts the same packets.
#[test]
fn windows_are_what_registers_held_at_their_cuts() {
    let mut bed = bed();
    let mut plane = Plane::count_min(7, 6, 12).unwrap();
    let (mut source, mut updates) = (Source::drawn(200, 3, true), Vec::new());
    let (mut at_cuts, mut noted) = (Vec::new(), 0);
    for step in 0..20_000 {
        for _ in 0..3 {
            let packet = source.packet();
            bed.packet(&packet);
            plane.packet(&packet, &mut updates);
        }
        if step % 5_000 == 1_000 {
            for group in 0..3 {
                assert!(bed.cut(group, CutKind::Carried, 0), "{step}: a cut waits");
            }
        }
        bed.pass();
        for cut in &bed.cuts[noted..] {
            at_cuts.push((cut.group, cut.epoch, plane.values(cut.group).to_vec()));
        }
        noted = bed.cuts.len();
    }
    assert_eq!(at_cuts.len(), 12);
    assert_eq!(bed.heard.windows.len(), 12);
    for window in &bed.heard.windows {
        let held = at_cuts
            .iter()
            .find(|it| (it.0, it.1) == (window.group, window.epoch));
        assert_eq!(
            held.map(|it| &it.2),
            Some(&window.values),
            "{}",
            window.epoch
        );
    }
    let used = |values: &Vec<u64>| values.iter().any(|value| *value != 0);
    assert!(at_cuts.iter().all(|it| used(&it.2)));
}

#[test]
fn a_mark_knows_its_packets_and_when_traffic_stops_the_view_is_exact() {
    let mut bed = bed();
    let mut source = Source::drawn(200, 3, true);
    for _ in 0..4_000 {
        bed.packet(&source.packet());
        bed.pass();
    }
    let told = bed.told(0).unwrap();
    let packets = bed.packets_at(0, told.stamp).unwrap();
    assert!(
        packets <= bed.packets && packets + 1_000 > bed.packets,
        "{packets}"
    );
    assert_eq!(bed.packets_at(0, told.stamp + 1_000), None);
    let begin = bed.now;
    let rest = |bed: &Collected| bed.now > begin + 50_000;
    bed.until("a rest", 100_000, |_| Ok(()), rest).unwrap();
    for group in 0..3 {
        assert_eq!(bed.told(group).unwrap().bound, Some(0));
        let view = bed.view(group).to_vec();
        assert!(
            view.iter()
                .enumerate()
                .all(|(at, value)| bed.held(group, at as u32) == *value)
        );
    }
    assert_eq!((bed.lost(), bed.recirculated()), (0, 0));
}

#[test]
fn a_write_of_many_values_is_there_with_its_cut_and_not_before() {
    let mut bed = bed();
    let values: Vec<(u32, u64)> = (0..300).map(|at| (at, 7)).collect();
    let ticket = bed.write(0, &values).unwrap();
    let ends = |bed: &Collected| !bed.heard.written.is_empty();
    let mut held = Vec::new();
    let look = |bed: &mut Collected| {
        if bed.cuts.is_empty() {
            held.push(bed.held(0, 299));
        }
        Ok(())
    };
    bed.until("the write", 100_000, look, ends).unwrap();
    assert!(held.len() > 50 && held.iter().all(|value| *value == 0));
    assert_eq!(bed.heard.written[0].0, ticket);
    assert_eq!(bed.heard.written[0].1, Some(Outcome::Done));
    assert!(bed.view(0)[..300].iter().all(|value| *value == 7));
    let settled = Collected::is_settled;
    bed.until("the sweep", 100_000, |_| Ok(()), settled)
        .unwrap();
    assert_eq!([bed.held(0, 299), bed.held(0, 300)], [7, 0]);
    let refused = bed.write(0, &[(385, 1)]).unwrap_err();
    assert_eq!(refused.code(), "EV003");
    let refused = bed
        .until("never", 1_000, |_| Ok(()), |_| false)
        .unwrap_err();
    assert!(
        refused.to_string().contains("never did not end"),
        "{refused}"
    );
}
