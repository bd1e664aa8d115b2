//! The switch's host's half of the talk with the controller, without IO.

use std::collections::BTreeMap;

use stateplane_wire::multicast_control::{Beat, Message, ROOM_OF_BEAT, Row, Standing, slot};

/// The controller's newest decision about each group and slot, which a switch follows.
///
/// Send [`Follower::beat`] every so often, and put what [`Follower::handle_message`] gives into the
/// program's tables before the next one: it says so.
#[derive(Debug, Clone)]
pub struct Follower {
    switch: u32,
    incarnation: u32,
    beats: u64,
    controller: u32,
    version: u64,
    /// Number of the decision that was last taken of each group.
    records: BTreeMap<u8, u32>,
    /// Slots whose sessions are ended.
    ended: Vec<u16>,
}

impl Follower {
    /// A switch of this number that knows nothing; `incarnation` is not 0.
    pub fn new(switch: u32, incarnation: u32) -> Follower {
        Follower {
            switch,
            incarnation,
            beats: 0,
            controller: 0,
            version: 0,
            records: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    /// Which start of the switch it speaks for.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Slots of ended sessions: the controller asks whether a log holds an entry of them.
    pub fn ended(&self) -> &[u16] {
        &self.ended
    }

    /// The next BEAT. `standings` tell how far the switch is in each group of which it has anything,
    /// and `holds` which of the ended slots a log of it holds entries of.
    pub fn beat(
        &mut self,
        standings: Vec<Standing>,
        holds: impl IntoIterator<Item = u16>,
    ) -> Vec<u8> {
        self.beats += 1;
        let mut beat = Beat {
            switch: self.switch,
            incarnation: self.incarnation,
            number: self.beats,
            controller: self.controller,
            version: self.version,
            held: [0; 32],
            standings,
            room: ROOM_OF_BEAT,
        };
        for slot in holds {
            beat.set_holds(slot);
        }
        Message::Beat(beat).to_vec()
    }

    /// Its last decisions could not be put into tables: it asks for all anew.
    pub fn doubt(&mut self) {
        self.version = 0;
        self.records.clear();
    }

    /// Takes a message of the controller, and gives the rows that are news. The one after them may
    /// be asked for at once.
    pub fn handle_message(&mut self, bytes: &[u8]) -> Vec<Row> {
        let Ok(Message::View {
            controller,
            after,
            version,
            rows,
        }) = Message::parse(bytes)
        else {
            return Vec::new();
        };
        if controller != self.controller {
            // Another start counts from the beginning.
            if after != 0 {
                return Vec::new();
            }
            self.controller = controller;
            self.version = 0;
        }
        if after > self.version || version <= self.version {
            return Vec::new();
        }
        self.version = version;
        let mut news = rows;
        news.retain(|row| match row {
            Row::Group(row) => {
                let known = self.records.get(&row.group);
                known.is_none_or(|known| *known < row.record)
            }
            Row::Session(_) => true,
        });
        for row in &news {
            match row {
                Row::Group(row) => {
                    self.records.insert(row.group, row.record);
                }
                Row::Session(row) => {
                    self.ended.retain(|slot| *slot != row.slot);
                    if row.state == slot::ENDED {
                        self.ended.push(row.slot);
                    }
                }
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use stateplane_wire::multicast_control::{Group, Session};

    use super::*;

    fn group(record: u32) -> Row {
        Row::Group(Group {
            group: 3,
            record,
            epoch: 1,
            leader: Ipv4Addr::UNSPECIFIED,
            list: 0,
            members: Vec::new(),
            receivers: Vec::new(),
        })
    }

    fn session(slot: u16, state: u8) -> Row {
        Row::Session(Session {
            slot,
            lanes: 0,
            state,
        })
    }

    fn view(controller: u32, after: u64, version: u64, rows: Vec<Row>) -> Vec<u8> {
        Message::View {
            controller,
            after,
            version,
            rows,
        }
        .to_vec()
    }

    #[test]
    fn rows_only_get_newer() {
        let mut follower = Follower::new(1, 5);
        let take = |follower: &mut Follower, bytes: Vec<u8>| follower.handle_message(&bytes).len();
        assert_eq!(take(&mut follower, view(7, 0, 4, vec![group(5)])), 1);
        // The same again, one of before, one with something between.
        assert_eq!(take(&mut follower, view(7, 0, 4, vec![group(6)])), 0);
        assert_eq!(take(&mut follower, view(7, 4, 5, vec![group(4)])), 0);
        assert_eq!(take(&mut follower, view(7, 9, 10, vec![group(7)])), 0);
        assert_eq!(take(&mut follower, view(7, 5, 6, vec![group(6)])), 1);
        // Another start of the controller, from the beginning only.
        assert_eq!(take(&mut follower, view(8, 2, 3, vec![group(7)])), 0);
        assert_eq!(take(&mut follower, view(8, 0, 1, vec![group(6)])), 0);
        assert_eq!(take(&mut follower, view(8, 1, 2, vec![group(7)])), 1);
        assert_eq!(take(&mut follower, b"nonsense".to_vec()), 0);
    }

    #[test]
    fn what_is_doubted_is_asked_for_anew() {
        let mut follower = Follower::new(1, 5);
        let bytes = view(7, 0, 4, vec![group(5)]);
        assert_eq!(follower.handle_message(&bytes).len(), 1);
        follower.doubt();
        assert_eq!(follower.handle_message(&bytes).len(), 1);
    }

    #[test]
    fn a_beat_says_what_is_followed_and_which_slots_are_held() {
        let mut follower = Follower::new(1, 5);
        let rows = vec![
            session(2, slot::ENDED),
            session(9, slot::ENDED),
            session(1, slot::OPEN),
        ];
        follower.handle_message(&view(7, 0, 4, rows));
        assert_eq!(follower.ended(), [2, 9]);
        follower.handle_message(&view(7, 4, 5, vec![session(2, slot::FREE)]));
        assert_eq!(follower.ended(), [9]);
        for number in 1..3 {
            let beat = Message::parse(&follower.beat(Vec::new(), [9])).unwrap();
            let Message::Beat(beat) = beat else {
                panic!("{beat:?}");
            };
            assert_eq!((beat.switch, beat.incarnation, beat.number), (1, 5, number));
            assert_eq!((beat.controller, beat.version), (7, 5));
            assert!(beat.holds(9) && !beat.holds(2));
        }
    }
}
