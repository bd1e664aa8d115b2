//! Facts as transactions that etcd takes: at most 128 operations and 1.5 MB each.

use std::collections::BTreeMap;

use stateplane_host::sync::{Fact, MOST_WRITE_IDS, Window};

use super::encoding::{self, Head};
use crate::proto::RequestOp;
use crate::transaction::{delete_between, put};

/// Bytes of a piece of a window or of totals.
const PIECE: usize = 1 << 20;

/// Most operations of a transaction.
const MOST_OPERATIONS: usize = 100;

/// Operations of transactions, in their order.
pub(super) struct Batches<'a> {
    prefix: &'a str,
    done: Vec<Vec<RequestOp>>,
    /// The last one's requests. A key is written once in a transaction, and so the last value
    /// counts.
    values: BTreeMap<String, Vec<u8>>,
}

impl Batches<'_> {
    /// The transactions that keep `facts` below `prefix`.
    pub(super) fn of(prefix: &str, facts: &[Fact]) -> Vec<Vec<RequestOp>> {
        let mut batches = Batches {
            prefix,
            done: Vec::new(),
            values: BTreeMap::new(),
        };
        for fact in facts {
            match fact {
                Fact::Window {
                    group,
                    window,
                    oldest,
                } => batches.window(group, window, *oldest),
                Fact::Epochs { group, epochs } => {
                    batches.put(&encoding::epochs_key(group), encoding::epochs(epochs));
                }
                Fact::Totals {
                    group,
                    number,
                    bytes,
                } => batches.totals(group, *number, bytes),
                Fact::Write {
                    number,
                    id,
                    progress,
                } => {
                    let slot = number % MOST_WRITE_IDS as u64;
                    let value = encoding::write(*number, id, *progress);
                    batches.put(&format!("writes/{slot:05}"), value);
                }
            }
        }
        batches.end(Vec::new());
        batches.done
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    fn put(&mut self, name: &str, value: Vec<u8>) {
        if self.values.len() >= MOST_OPERATIONS {
            self.end(Vec::new());
        }
        self.values.insert(self.key(name), value);
    }

    /// Ends a transaction, which does `more` too.
    fn end(&mut self, more: Vec<RequestOp>) {
        let values = std::mem::take(&mut self.values).into_iter();
        let mut operations: Vec<_> = values.map(|(key, value)| put(&key, value, 0)).collect();
        operations.extend(more);
        if !operations.is_empty() {
            self.done.push(operations);
        }
    }

    /// Totals: each piece, then what makes them those that are kept. Pieces lie in two places by turns, so
    /// that those before stay until then.
    fn totals(&mut self, group: &str, number: u64, bytes: &[u8]) {
        let pieces = self.pieces(&encoding::totals_pieces(group, number), bytes);
        let head = Head {
            number,
            incarnation: 0,
            epoch: 0,
            bytes: bytes.len() as u64,
            pieces,
        };
        self.put(&encoding::totals(group), head.to_vec());
    }

    /// Pieces below `folder`, each a transaction: how many.
    fn pieces(&mut self, folder: &str, bytes: &[u8]) -> u32 {
        self.end(Vec::new());
        let mut pieces = 0;
        for piece in bytes.chunks(PIECE) {
            self.put(&format!("{folder}{pieces:06}"), piece.to_vec());
            self.end(Vec::new());
            pieces += 1;
        }
        pieces
    }

    /// A window: each piece, then what makes it one that is kept and forgets older ones.
    fn window(&mut self, group: &str, window: &Window, oldest: u64) {
        let pieces = self.pieces(&encoding::pieces(group, window.number), &window.values);
        let head = Head {
            number: window.number,
            incarnation: window.incarnation,
            epoch: window.epoch,
            bytes: window.values.len() as u64,
            pieces,
        };
        self.put(&encoding::window(group, window.number), head.to_vec());
        let before = |name: fn(&str, u64) -> String| {
            delete_between(&self.key(&name(group, 0)), &self.key(&name(group, oldest)))
        };
        let forgotten = vec![before(encoding::window), before(encoding::pieces)];
        self.end(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stateplane_host::sync::Progress;

    use super::*;
    use crate::proto::request_op::Request;

    fn window(number: u64, bytes: usize) -> Fact {
        Fact::Window {
            group: "a".to_owned(),
            window: Window {
                number,
                incarnation: 1,
                epoch: number as u32,
                values: Arc::new(vec![7; bytes]),
            },
            oldest: number,
        }
    }

    fn puts(batch: &[RequestOp]) -> Vec<(String, usize)> {
        let puts = batch
            .iter()
            .filter_map(|operation| match &operation.request {
                Some(Request::RequestPut(put)) => {
                    let key = String::from_utf8(put.key.clone()).expect("text");
                    Some((key, put.value.len()))
                }
                _ => None,
            });
        puts.collect()
    }

    #[test]
    fn a_window_is_there_behind_its_pieces_and_no_transaction_is_too_long() {
        let facts = [window(7, 2 * PIECE + 8), window(8, 8)];
        let batches = Batches::of("/p", &facts);
        let lengths: Vec<_> = batches.iter().map(|batch| puts(batch)).collect();
        let piece = |number: u64, at: u32, bytes| {
            let key = format!("/p/pieces/61/{number:020}/{at:06}");
            vec![(key, bytes)]
        };
        let head = |number: u64| vec![(format!("/p/windows/61/{number:020}"), 28)];
        let expected = [
            piece(7, 0, PIECE),
            piece(7, 1, PIECE),
            piece(7, 2, 8),
            head(7),
            piece(8, 0, 8),
            head(8),
        ];
        assert_eq!(lengths, expected);
        // With a window older ones go: their pieces too.
        assert_eq!((batches[3].len(), batches[0].len()), (3, 1));
    }

    #[test]
    fn totals_take_the_place_of_those_before_once_all_pieces_are_there() {
        let totals = |number, bytes| Fact::Totals {
            group: "a".to_owned(),
            number,
            bytes: Arc::new(vec![7; bytes]),
        };
        let batches = Batches::of("/p", &[totals(6, PIECE + 1), totals(7, 8)]);
        let lengths: Vec<_> = batches.iter().map(|batch| puts(batch)).collect();
        let piece = |place: u64, at: u32, bytes| {
            vec![(format!("/p/totals-pieces/61/{place}/{at:06}"), bytes)]
        };
        let head = || vec![("/p/totals/61".to_owned(), 28)];
        let first = [piece(0, 0, PIECE), piece(0, 1, 1), head()];
        assert_eq!(lengths, [&first[..], &[piece(1, 0, 8), head()]].concat());
    }

    #[test]
    fn of_a_key_the_last_value_counts_and_writes_share_transactions() {
        let write = |number: u64, progress| Fact::Write {
            number,
            id: [number as u8; 16],
            progress,
        };
        let all = MOST_WRITE_IDS as u64;
        let mut facts: Vec<_> = (0..150).map(|at| write(at, Progress::Begun)).collect();
        facts.push(write(149, Progress::Unknown));
        facts.push(write(all + 149, Progress::Begun));
        let epochs = |epoch| Fact::Epochs {
            group: "a".to_owned(),
            epochs: vec![(1, epoch)],
        };
        facts.extend([epochs(1), epochs(2)]);
        let batches = Batches::of("", &facts);
        let counts: Vec<_> = batches.iter().map(Vec::len).collect();
        assert_eq!(counts, [100, 51]);
        let last = batches[1]
            .iter()
            .find_map(|operation| match &operation.request {
                Some(Request::RequestPut(put)) if put.key == b"/writes/00149" => Some(&put.value),
                _ => None,
            });
        assert_eq!(
            last,
            Some(&encoding::write(all + 149, &[149; 16], Progress::Begun))
        );
        assert!(Batches::of("", &[]).is_empty());
    }
}
