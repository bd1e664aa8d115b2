use super::*;
use stateplane_wire::sync::Value;

const LOCATIONS: u32 = 2;

/// An engine, and time and stamp of the next message that it takes.
struct Followed {
    engine: Engine,
    now: u64,
    stamp: u64,
}

impl Followed {
    fn new() -> Followed {
        let settings = Settings {
            group: 3,
            locations: LOCATIONS,
            batch: 2,
            poll_us: 10,
            retry_us: 10,
            term: 1,
            nonce: 1,
        };
        Followed {
            engine: Engine::new(settings, 0, []).expect("settings"),
            now: 0,
            stamp: 0,
        }
    }

    /// The engine takes a message of a start of the switch; its bound is 4.
    fn hear(&mut self, kind: MessageType, incarnation: u32, values: &[Value]) {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| value.push(&mut bytes));
        let message = Repr {
            group: 3,
            incarnation,
            starter: self.engine.starter,
            stamp: self.stamp,
            bound: 4,
            values: Values::new(&bytes),
            ..Repr::new(kind)
        };
        let bytes = message.to_vec().expect("it fits");
        self.engine.handle_datagram(self.now, &bytes);
        self.stamp += 1;
    }

    fn update(&mut self, incarnation: u32, values: &[(u32, u64)]) {
        let value = |&(index, value): &(u32, u64)| Value { index, value };
        let values: Vec<Value> = values.iter().map(value).collect();
        self.hear(MessageType::Update, incarnation, &values);
    }

    /// The view before the one that began.
    fn last(&mut self) -> Option<LastView> {
        let events = std::iter::from_fn(|| self.engine.poll_event());
        let mut last = events.filter_map(|event| match event {
            Event::Generation { last, .. } => Some(last),
            _ => None,
        });
        last.next().expect("a generation")
    }
}

#[test]
fn the_view_of_a_start_of_the_switch_is_given_when_the_next_begins() {
    let mut followed = Followed::new();
    followed.hear(MessageType::Started, 7, &[]);
    assert_eq!(followed.last(), None);
    followed.update(7, &[(0, 10), (1, 20)]);
    followed.update(7, &[(0, 11)]);
    followed.now = 500;
    followed.update(8, &[(0, 1)]);
    assert_eq!(followed.engine.told(500), None);

    // The next start answers the engine's START later.
    followed.now = 900;
    followed.hear(MessageType::Started, 8, &[]);
    let last = followed.last().expect("a view");
    assert_eq!((last.incarnation, last.ended), (7, 500));
    assert_eq!(last.values, [11, 20]);
    let told = last.told.expect("it was complete");
    assert_eq!((told.incarnation, told.bound), (7, Some(4)));
    assert_eq!(followed.engine.values(), [0, 0]);

    // One that lacks values promises nothing, and has what came.
    followed.update(8, &[(1, 2)]);
    followed.update(9, &[]);
    followed.hear(MessageType::Started, 9, &[]);
    let last = followed.last().expect("a view");
    assert_eq!((last.incarnation, last.told), (8, None));
    assert_eq!(last.values, [0, 2]);
}
