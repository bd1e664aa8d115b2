//! A switch's table of heads: what the controller said, newest first.

use std::collections::BTreeMap;

use stateplane_wire::control::{Message, Row};

/// The switch's half of the talk with the controller, without IO: it asks again and
/// again for what changed.
///
/// Send [`Rows::ask`] every [`Rows::PERIOD`] µs and after each
/// [`Rows::handle_message`] that gave rows.
#[derive(Debug, Clone)]
pub struct Rows {
    switch: u32,
    controller: u32,
    version: u64,
    epochs: BTreeMap<u16, u32>,
}

impl Rows {
    /// µs between questions when nothing changes.
    pub const PERIOD: u64 = 100_000;

    /// A switch that knows nothing.
    pub fn new(switch: u32) -> Rows {
        Rows {
            switch,
            controller: 0,
            version: 0,
            epochs: BTreeMap::new(),
        }
    }

    /// The question to send to the controller, which answers it if anything changed.
    pub fn ask(&self) -> Vec<u8> {
        Message::Subscribe {
            switch: self.switch,
            controller: self.controller,
            version: self.version,
        }
        .to_vec()
    }

    /// A question that every controller with chains answers, if only with a row that is known: for
    /// a sign of life where nothing changes.
    pub fn ask_for_a_sign(&self) -> Vec<u8> {
        Message::Subscribe {
            switch: self.switch,
            controller: self.controller,
            // The row that changed last comes again.
            version: self.version.saturating_sub(1),
        }
        .to_vec()
    }

    /// Takes a message from the controller, and gives the rows that are news.
    pub fn handle_message(&mut self, bytes: &[u8]) -> Vec<Row> {
        let Ok(Message::Rows {
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
        if after > self.version {
            return Vec::new();
        }
        self.version = self.version.max(version);
        let mut news = rows;
        news.retain(|row| {
            let known = self.epochs.get(&row.shard);
            known.is_none_or(|known| row.epoch > *known)
        });
        for row in &news {
            self.epochs.insert(row.shard, row.epoch);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    fn rows(controller: u32, after: u64, version: u64, epoch: u32) -> Vec<u8> {
        let row = Row {
            shard: 3,
            epoch,
            head: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4793),
        };
        Message::Rows {
            controller,
            after,
            version,
            rows: vec![row],
        }
        .to_vec()
    }

    #[test]
    fn rows_only_get_newer() {
        let mut table = Rows::new(1);
        assert_eq!(table.handle_message(&rows(7, 0, 4, 5)).len(), 1);
        assert!(table.handle_message(&rows(7, 0, 4, 5)).is_empty());
        assert!(table.handle_message(&rows(7, 4, 5, 4)).is_empty());
        assert_eq!(table.handle_message(&rows(7, 5, 6, 6)).len(), 1);
        // Something lies between.
        assert!(table.handle_message(&rows(7, 9, 10, 7)).is_empty());
        // Another start of the controller, from the beginning only.
        assert!(table.handle_message(&rows(8, 2, 3, 7)).is_empty());
        assert_eq!(table.handle_message(&rows(8, 0, 1, 7)).len(), 1);
        assert!(table.handle_message(b"nonsense").is_empty());
    }
}
