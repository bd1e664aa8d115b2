//! Packets that the serving gateway drops by its own rules, apart from those that were lost.

use stateplane_apps::judged;
use stateplane_history::replication::{Document, dropped_by_right};

/// Requests of a serving gateway (`stateplane_apps`' machine) and its outputs.
const CREATE: u64 = 1 << 61;
const DELETE: u64 = 3 << 61;
const UPLINK: u64 = 4 << 61;
const ACCEPTED: Option<u64> = Some(0);
const FORWARDED: Option<u64> = Some(1 << 32);

/// The packets that may have been dropped, of requests each with its output, if it came:
/// one answered before the next is sent.
fn dropped(packets: &[(u64, Option<u64>)]) -> Vec<u64> {
    let mut text = "application serving-gateway\n".to_owned();
    for (number, (request, output)) in packets.iter().enumerate() {
        let at = 10 * number;
        text += &format!("{at} input switch=0 flow=a packet={number} request={request}\n");
        if let Some(output) = output {
            let at = at + 5;
            text += &format!("{at} output switch=0 flow=a packet={number} value={output}\n");
        }
    }
    let document = Document::read(&text, &judged()).expect("a history");
    dropped_by_right(&document.history).into_iter().collect()
}

#[test]
fn data_outside_a_session_is_dropped_and_within_one_is_lost() {
    let packets = [
        (UPLINK, None),
        (CREATE, ACCEPTED),
        (UPLINK, None),
        (UPLINK, FORWARDED),
        (DELETE, ACCEPTED),
        (UPLINK, None),
    ];
    assert_eq!(dropped(&packets), [0, 5]);
}

#[test]
fn signalling_without_an_answer_may_have_taken_effect() {
    let packets = [
        (CREATE, ACCEPTED),
        (DELETE, None),
        (UPLINK, None),
        (CREATE, ACCEPTED),
        (UPLINK, None),
    ];
    // The deletion is always answered, so it was lost; what follows meets no session if
    // it took effect.
    assert_eq!(dropped(&packets), [2]);
}

#[test]
fn a_session_seen_later_was_there() {
    let packets = [
        (CREATE, ACCEPTED),
        (DELETE, None),
        (UPLINK, FORWARDED),
        (UPLINK, None),
        (UPLINK, FORWARDED),
    ];
    assert_eq!(dropped(&packets), Vec::<u64>::new());
}
