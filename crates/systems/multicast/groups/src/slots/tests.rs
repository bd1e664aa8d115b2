use core::net::Ipv4Addr;

use super::*;

const ASKER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);

fn store(table: &mut SlotTable) {
    while let Some(book) = table.poll_book() {
        table.stored(&book).unwrap();
    }
}

fn table(stored: Option<&SlotBook>) -> SlotTable {
    SlotTable::new(2, 4, 6, stored, 0)
}

#[test]
fn the_slot_that_had_the_fewest_sessions_is_given() {
    let mut table = table(None);
    assert_eq!(table.open(0, 1, 2, ASKER), Asked::Slot(0));
    store(&mut table);
    assert!(!table.close(0, 1, ASKER));
    store(&mut table);
    assert!(table.close(0, 1, ASKER));
    assert_eq!(table.granted(), 2);
    table.free(|_, _| true);
    store(&mut table);
    assert_eq!(table.granted(), 0);
    assert_eq!(table.open(0, 2, 2, ASKER), Asked::Slot(1));
    assert_eq!(table.open(0, 3, 2, ASKER), Asked::Slot(0));
    let book = table.poll_book().unwrap();
    let incarnations: Vec<u16> = book.slots.iter().map(|it| it.incarnation).collect();
    assert_eq!(incarnations, [2, 1]);
}

#[test]
fn a_slot_whose_incarnations_are_used_up_is_nobodys() {
    let used = Slot {
        incarnation: u16::MAX,
        state: SlotState::Free,
    };
    let book = SlotBook {
        version: 1,
        slots: vec![used, used],
    };
    let mut table = table(Some(&book));
    assert_eq!(table.open(0, 1, 1, ASKER), Asked::NoSlot);
}

#[test]
fn slots_beyond_those_of_the_settings_stay_as_they_are() {
    let open = Slot {
        incarnation: 3,
        state: SlotState::Open { lanes: 5, nonce: 9 },
    };
    let book = SlotBook {
        version: 1,
        slots: vec![Slot::default(), Slot::default(), open],
    };
    let mut table = table(Some(&book));
    assert_eq!(table.granted(), 5);
    assert_eq!(table.open(0, 9, 4, ASKER), Asked::Slot(2));
    // One lane is left of six.
    assert_eq!(table.open(0, 1, 4, ASKER), Asked::Slot(0));
    assert_eq!(table.granted(), 6);
    assert_eq!(table.open(0, 2, 4, ASKER), Asked::NoLane);
}

#[test]
fn one_book_is_stored_at_a_time() {
    let mut table = table(None);
    table.open(0, 1, 1, ASKER);
    let first = table.poll_book().unwrap();
    table.open(0, 2, 1, ASKER);
    assert_eq!(table.poll_book(), None);
    assert_eq!(table.stored(&SlotBook::default()), None);
    let changed = table.stored(&first).unwrap();
    assert_eq!(changed, [(0, Slot::default())]);
    let second = table.poll_book().unwrap();
    assert_eq!(second.version, first.version + 1);
    table.stored(&second).unwrap();
    assert_eq!(table.poll_book(), None);
}

#[test]
fn a_session_of_another_incarnation_is_not_heard_nor_closed() {
    let mut table = table(None);
    table.open(0, 1, 1, ASKER);
    store(&mut table);
    assert_eq!(table.homes().count(), 0);
    assert!(table.hear(5, 0, 1, ASKER));
    assert_eq!(table.homes().collect::<Vec<_>>(), [(0, 1, ASKER)]);
    assert!(!table.hear(5, 0, 2, ASKER));
    assert!(!table.hear(5, 1, 1, ASKER));
    assert!(!table.hear(5, 9, 1, ASKER));
    assert!(!table.close(0, 2, ASKER));
    assert!(!table.close(9, 1, ASKER));
    assert_eq!(table.expire(104, 100), 0);
    assert_eq!(table.next_end(100), Some(105));
    assert_eq!(table.expire(105, 100), 1);
    assert_eq!(table.next_end(100), None);
    assert_eq!(table.homes().count(), 0);
}
