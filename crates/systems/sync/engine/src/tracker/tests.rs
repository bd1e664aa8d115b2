use super::*;
use proptest::prelude::*;

#[test]
fn what_came_in_order_hides_nothing() {
    let mut tracker = Tracker::new(10, 100);
    tracker.came(10, 4, 100, 130);
    tracker.came(14, 2, 130, 140);
    assert_eq!(
        (tracker.next(), tracker.hidden(), tracker.open()),
        (16, 0, 0)
    );
}

#[test]
fn a_gap_hides_the_difference_of_the_sums_around_it() {
    let mut tracker = Tracker::new(0, 0);
    tracker.came(0, 2, 0, 5);
    tracker.came(4, 2, 30, 31);
    assert_eq!(
        (tracker.next(), tracker.hidden(), tracker.open()),
        (2, 25, 2)
    );
    assert_eq!(
        tracker.missing(),
        vec![core::ops::Range { start: 2, end: 4 }]
    );
}

#[test]
fn a_mark_shows_what_is_missing_at_the_end() {
    let mut tracker = Tracker::new(0, 0);
    tracker.came(3, 0, 12, 12);
    assert_eq!((tracker.hidden(), tracker.open()), (12, 3));
}

#[test]
fn a_named_position_counts_until_a_newer_value_of_its_location_came() {
    let mut tracker = Tracker::new(0, 0);
    tracker.came(2, 1, 7, 8);
    tracker.named(0, 5, 20, 3);
    tracker.named(1, 6, 20, 21);
    assert_eq!(
        (tracker.next(), tracker.hidden(), tracker.lost()),
        (3, 7, 2)
    );
    tracker.applied(5, 20);
    assert_eq!(tracker.hidden(), 7);
    tracker.applied(5, 21);
    assert_eq!((tracker.hidden(), tracker.open()), (0, 0));
}

/// The switch needs credit to send what supersedes them.
#[test]
fn named_positions_do_not_hold_back_the_credit() {
    let mut tracker = Tracker::new(0, 0);
    tracker.came(6, 0, 6, 6);
    for position in 0..6 {
        tracker.named(position, position as u32, 9, 0);
    }
    assert_eq!((tracker.next(), tracker.named_open()), (6, 6));
    tracker.applied(0, 10);
    assert_eq!(tracker.named_open(), 5);
}

#[test]
fn what_came_before_the_view_began_is_ignored() {
    let mut tracker = Tracker::new(10, 100);
    tracker.came(4, 3, 0, 50);
    assert_eq!((tracker.next(), tracker.hidden()), (10, 0));
}

/// A value that a switch sends: where, how far, and what becomes of its message.
#[derive(Clone, Debug)]
struct Sent {
    location: u32,
    distance: u64,
    starts_message: bool,
    lost: bool,
    delay: usize,
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let one = (
        0..6_u32,
        0..9_u64,
        any::<bool>(),
        any::<bool>(),
        0..12_usize,
    );
    let one = one.prop_map(|(location, distance, starts_message, lost, delay)| Sent {
        location,
        distance,
        starts_message,
        lost,
        delay,
    });
    proptest::collection::vec(one, 1..60)
}

proptest! {
    /// Whatever is lost and exchanged: no location's lost movement is greater than what is said
    /// to be hidden, and no position is forgotten.
    #[test]
    fn nothing_lost_is_ever_greater_than_what_is_hidden(sent in sent(), named in any::<u64>()) {
        struct Message { position: u64, stamp: u64, values: Vec<Sent>, before: u64, after: u64 }
        let mut messages: Vec<Message> = Vec::new();
        let mut sum = 0;
        for (position, value) in sent.iter().enumerate() {
            if value.starts_message || messages.is_empty() {
                let stamp = messages.len() as u64 + 1;
                messages.push(Message {
                    position: position as u64, stamp, values: vec![], before: sum, after: sum,
                });
            }
            let message = messages.last_mut().unwrap();
            sum += value.distance;
            message.values.push(value.clone());
            message.after = sum;
        }
        let mut order: Vec<usize> = (0..messages.len()).collect();
        order.sort_by_key(|at| at + messages[*at].values[0].delay);
        order.retain(|at| !messages[*at].values[0].lost);
        let mut tracker = Tracker::new(0, 0);
        let mut newest = [0_u64; 6];
        let mut seen = 0;
        for at in order {
            let message = &messages[at];
            seen = seen.max(message.stamp);
            for value in &message.values {
                let of = &mut newest[value.location as usize];
                *of = (*of).max(message.stamp);
                tracker.applied(value.location, message.stamp);
            }
            let count = message.values.len() as u64;
            tracker.came(message.position, count, message.before, message.after);
            // Some of the lost positions are named, with the stamp of what was sent last.
            for lost in tracker.missing() {
                for position in lost.filter(|position| named >> (position % 64) & 1 == 1) {
                    let location = sent[position as usize].location;
                    tracker.named(position, location, seen, newest[location as usize]);
                }
            }
            let mut hidden = [0_u64; 6];
            for message in messages.iter().filter(|message| message.stamp <= seen) {
                for value in &message.values {
                    let location = value.location as usize;
                    if message.stamp > newest[location] {
                        hidden[location] += value.distance;
                    }
                }
            }
            for off in hidden {
                prop_assert!(off <= tracker.hidden());
            }
        }
    }
}
