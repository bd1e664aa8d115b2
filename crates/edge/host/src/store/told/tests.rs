use super::*;
use crate::log_lines::lines;

/// This server's places at `position` of chains 0 to 9, which have `length` members.
fn places(epoch: u32, length: u8, position: u8, suspects: bool) -> BTreeMap<u16, Place> {
    let place = Place {
        epoch,
        length,
        position,
        suspects,
    };
    (0..10).map(|chain| (chain, place)).collect()
}

#[test]
fn a_change_of_many_chains_is_one_line() {
    let mut told = Told::default();
    let named = "chains=[0, 1, 2, 3, 4, 5, 6, 7] count=10";
    let mut tell = |places| lines(|| told.tell_places(places));
    assert_eq!(
        tell(places(1, 3, 0, false)),
        [format!("INFO has a place in chains {named} length=3")]
    );
    assert_eq!(tell(places(1, 3, 0, false)), [""; 0]);
    assert_eq!(
        tell(places(1, 3, 0, true)),
        [format!(
            "WARN the next server of chains is not heard {named}"
        )]
    );
    // Nobody heard the next server again: there is another one.
    assert_eq!(
        tell(places(2, 2, 0, false)),
        [format!("WARN chains are shorter {named} length=2 before=3")]
    );
    assert_eq!(
        tell(places(3, 3, 0, false)),
        [format!("INFO chains are longer {named} length=3 before=2")]
    );
    assert_eq!(
        tell(places(4, 3, 1, false)),
        [format!("INFO has another place in chains {named} length=3")]
    );
    assert_eq!(
        tell(BTreeMap::new()),
        [format!("WARN this server has left chains {named}")]
    );
    assert_eq!(
        tell(places(5, 3, 3, false)),
        [format!("INFO joins chains {named}")]
    );
}

#[test]
fn who_was_silent_and_is_heard_is_told() {
    let mut told = Told::default();
    told.tell_places(places(1, 2, 0, true));
    let said = lines(|| told.tell_places(places(1, 2, 0, false)));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("is heard again"), "{said:?}");
}

#[test]
fn refusals_are_counted_from_look_to_look() {
    let mut told = Told::default();
    let mut counters = Counters {
        store_full: 3,
        granted: LEASE_STORM + 1,
        ..Counters::default()
    };
    let said = lines(|| told.events(counters));
    assert!(
        said[0].starts_with("WARN the table of records is full") && said[0].ends_with("count=3"),
        "{said:?}"
    );
    assert!(said[1].starts_with("WARN a lease storm"), "{said:?}");
    assert_eq!(said.len(), 2);
    counters.granted += 1;
    let said = lines(|| told.events(counters));
    assert_eq!(said, ["INFO the lease storm is over granted=1"]);
}

#[test]
fn a_server_that_asks_for_a_longer_backing_is_named_with_both_times() {
    let longer = LongerBacking {
        from: "10.0.0.2:4794".parse().unwrap(),
        asked: 1_000_000,
        given: 400_000,
    };
    let told = lines(|| Told::longer_backing(&longer));
    assert_eq!(told.len(), 1);
    for named in ["10.0.0.2:4794", "1000000 µs", "400000 µs", "backing_ms"] {
        assert!(told[0].contains(named), "{told:?}");
    }
}
