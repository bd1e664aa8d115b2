//! Rows that one side keeps and another learns, by versions.

use std::collections::BTreeMap;

use stateplane_wire::term::{Changes, MOST_ROWS, Row};

/// Rows at their sender. Each change has a version, counted from 1.
#[derive(Debug, Clone)]
pub struct Stream {
    id: u32,
    version: u32,
    rows: BTreeMap<u16, (Row, u32)>,
    by_version: BTreeMap<u32, u16>,
}

impl Stream {
    /// A stream without rows. `id` is drawn anew each time that its process starts; 0 counts
    /// as 1.
    pub fn new(id: u32) -> Stream {
        Stream {
            id: id.max(1),
            version: 0,
            rows: BTreeMap::new(),
            by_version: BTreeMap::new(),
        }
    }

    /// The number that tells it from other streams, never 0.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Sets the row of its shard; one that is the same as before is no change.
    pub fn set(&mut self, row: Row) {
        let before = self.rows.get(&row.shard);
        if before.is_some_and(|(before, _)| *before == row) {
            return;
        }
        self.version = self.version.wrapping_add(1);
        if let Some((_, version)) = self.rows.insert(row.shard, (row, self.version)) {
            self.by_version.remove(&version);
        }
        self.by_version.insert(self.version, row.shard);
    }

    /// The row of `shard`.
    pub fn row(&self, shard: u16) -> Option<&Row> {
        self.rows.get(&shard).map(|(row, _)| row)
    }

    /// The shards that have a row.
    pub fn shards(&self) -> impl Iterator<Item = u16> {
        self.rows.keys().copied()
    }

    /// What changed after `version` of `stream`, and whether that is all of it.
    pub fn changes(&self, stream: u32, version: u32) -> (Changes, bool) {
        let known = stream == self.id && version <= self.version;
        let after = if known { version } else { 0 };
        let mut changes = Changes {
            stream: self.id,
            after,
            version: after,
            rows: Vec::new(),
        };
        let newer = self.by_version.range(after.saturating_add(1)..);
        for (version, shard) in newer {
            if changes.rows.len() == MOST_ROWS {
                return (changes, false);
            }
            changes.rows.extend(self.row(*shard));
            changes.version = *version;
        }
        (changes, true)
    }
}

/// Rows at their receiver.
#[derive(Debug, Clone, Default)]
pub struct Received {
    stream: u32,
    version: u32,
    rows: BTreeMap<u16, Row>,
}

impl Received {
    /// Stream and version to name when asking; 0 if nothing is known.
    pub fn known(&self) -> (u32, u32) {
        (self.stream, self.version)
    }

    /// Takes changes; `false` if they are of a version that is past, or something between is
    /// missing: then nothing changes.
    pub fn take(&mut self, changes: &Changes) -> bool {
        if changes.stream != self.stream {
            if changes.after != 0 {
                return false;
            }
            *self = Received {
                stream: changes.stream,
                ..Received::default()
            };
        }
        if changes.after > self.version || changes.version < self.version {
            return false;
        }
        self.version = changes.version;
        let rows = changes.rows.iter().map(|row| (row.shard, *row));
        self.rows.extend(rows);
        true
    }

    /// The row of `shard`.
    pub fn row(&self, shard: u16) -> Option<&Row> {
        self.rows.get(&shard)
    }

    /// All rows, by shard.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(shard: u16, epoch: u32) -> Row {
        Row {
            shard,
            epoch,
            flags: 1,
        }
    }

    #[test]
    fn what_changed_is_told_once() {
        let mut stream = Stream::new(9);
        let mut received = Received::default();
        stream.set(row(1, 1));
        stream.set(row(2, 1));
        let (changes, whole) = stream.changes(0, 0);
        assert!(whole && received.take(&changes));
        assert_eq!(received.known(), (9, 2));
        stream.set(row(1, 1));
        assert_eq!(stream.changes(9, 2).0.rows, []);
        stream.set(row(1, 2));
        let (changes, _) = stream.changes(9, 2);
        assert_eq!(changes.rows, [row(1, 2)]);
        assert!(received.take(&changes));
        assert_eq!(received.row(1), Some(&row(1, 2)));
        assert_eq!(received.rows().count(), 2);
    }

    #[test]
    fn many_rows_come_in_parts() {
        let mut stream = Stream::new(9);
        let mut received = Received::default();
        for shard in 0..400 {
            stream.set(row(shard, 1));
        }
        for part in 1..=3 {
            let (of, version) = received.known();
            let (changes, whole) = stream.changes(of, version);
            assert_eq!(whole, part == 3);
            assert!(received.take(&changes));
        }
        assert_eq!(received.rows().count(), 400);
    }

    #[test]
    fn a_gap_or_a_version_that_is_past_is_not_taken() {
        let mut stream = Stream::new(9);
        let mut received = Received::default();
        stream.set(row(1, 1));
        let first = stream.changes(0, 0).0;
        stream.set(row(1, 2));
        let second = stream.changes(9, 1).0;
        assert!(!received.take(&second));
        assert!(received.take(&first) && received.take(&second));
        assert!(!received.take(&first));
        assert_eq!(received.row(1), Some(&row(1, 2)));
    }

    #[test]
    fn another_stream_begins_anew() {
        let mut received = Received::default();
        let mut stream = Stream::new(9);
        stream.set(row(1, 1));
        assert!(received.take(&stream.changes(0, 0).0));
        let other = Stream::new(10);
        let (of, version) = received.known();
        assert!(received.take(&other.changes(of, version).0));
        assert_eq!(received.rows().count(), 0);
        assert_eq!(Stream::new(0).id(), 1);
    }
}
