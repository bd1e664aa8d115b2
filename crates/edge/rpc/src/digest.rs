//! Digests: lists of messages, their acknowledgement (specification, "DigestEntry" and
//! "DigestList").

use crate::entity::table::{self, put};
use crate::pipeline::Pipeline;
use crate::proto::v1::{self, update::Type};
use crate::refusal::Refusal;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use tonic::Code;

/// Messages of a list whose greatest size the control plane does not say.
const DEFAULT_LIST: usize = 64;

/// Maximum length of a digest list, with any setting of the control plane.
const MAX_LIST: usize = 1024;

/// Lists that wait for their acknowledgement; the oldest is forgotten beyond.
const MAX_UNACKNOWLEDGED: usize = 64;

/// A digest that is enabled.
#[derive(Debug)]
struct Enabled {
    config: v1::digest_entry::Config,
    /// Messages that wait for their list to be sent.
    waiting: Vec<v1::P4Data>,
    /// Encoded, those that wait and those that are in a list of `sent`.
    known: BTreeSet<Vec<u8>>,
    /// Time in µs of the first of them.
    since: u64,
    next_list: u64,
    /// Lists sent and not acknowledged, encoded, with the time in µs of their sending.
    sent: BTreeMap<u64, (u64, Vec<Vec<u8>>)>,
}

impl Enabled {
    fn size(&self) -> usize {
        match usize::try_from(self.config.max_list_size) {
            Ok(0) | Err(_) => DEFAULT_LIST,
            Ok(size) => size.min(MAX_LIST),
        }
    }

    /// µs from the first message to the sending.
    fn timeout(&self) -> u64 {
        u64::try_from(self.config.max_timeout_ns / 1000).unwrap_or(0)
    }

    fn is_due(&self, now: u64) -> bool {
        let old = now.saturating_sub(self.since) >= self.timeout();
        !self.waiting.is_empty() && (self.waiting.len() >= self.size() || old)
    }

    fn new(config: v1::digest_entry::Config) -> Enabled {
        Enabled {
            config,
            waiting: Vec::new(),
            known: BTreeSet::new(),
            since: 0,
            next_list: 1,
            sent: BTreeMap::new(),
        }
    }

    /// Forgets lists whose acknowledgement is overdue.
    fn forget(&mut self, now: u64) {
        let patience = u64::try_from(self.config.ack_timeout_ns / 1000).unwrap_or(0);
        while let Some(oldest) = self.sent.first_entry()
            && now.saturating_sub(oldest.get().0) >= patience
        {
            for data in oldest.remove().1 {
                self.known.remove(&data);
            }
        }
    }

    /// True if there was such a list.
    fn release(&mut self, list: u64) -> bool {
        let Some((_, list)) = self.sent.remove(&list) else {
            return false;
        };
        for data in list {
            self.known.remove(&data);
        }
        true
    }
}

/// All digests.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    enabled: BTreeMap<u32, Enabled>,
}

impl Digests {
    /// Enables, changes or disables a digest.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND`, `ALREADY_EXISTS`, or `INVALID_ARGUMENT` for negative numbers.
    pub(crate) fn write(
        &mut self,
        pipeline: &Pipeline,
        kind: Type,
        entry: &v1::DigestEntry,
    ) -> Result<(), Refusal> {
        let index = pipeline.digest(entry.digest_id)?;
        let there = self.enabled.contains_key(&index.id);
        match (kind, there) {
            (Type::Insert, true) => {
                return Err(Refusal::new(
                    Code::AlreadyExists,
                    format!("digest `{}` is enabled already", index.name),
                ));
            }
            (Type::Modify | Type::Delete, false) => {
                return Err(Refusal::not_found(format!(
                    "digest `{}` is not enabled",
                    index.name
                )));
            }
            (Type::Unspecified, _) => return Err(table::unspecified()),
            (Type::Delete, true) => {
                self.enabled.remove(&index.id);
                return Ok(());
            }
            _ => {}
        }
        let config = entry.config.unwrap_or_default();
        if config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0 {
            return Err(Refusal::invalid(
                "the times and sizes of a digest are not negative",
            ));
        }
        self.enabled
            .entry(index.id)
            .and_modify(|digest| digest.config = config)
            .or_insert_with(|| Enabled::new(config));
        Ok(())
    }

    /// The configurations of all digests, or of the one with that id if it is not 0.
    pub(crate) fn entries(&self, wanted: u32) -> Vec<v1::DigestEntry> {
        let enabled = self.enabled.iter();
        enabled
            .filter(|(id, _)| wanted == 0 || **id == wanted)
            .map(|(id, digest)| v1::DigestEntry {
                digest_id: *id,
                config: Some(digest.config),
            })
            .collect()
    }

    /// The configuration of a digest, to put back.
    pub(crate) fn before(&self, id: u32) -> Option<v1::digest_entry::Config> {
        self.enabled.get(&id).map(|digest| digest.config)
    }

    /// Puts a configuration back.
    pub(crate) fn restore(&mut self, id: u32, config: Option<v1::digest_entry::Config>) {
        let restored = config.map(|config| match self.enabled.remove(&id) {
            Some(digest) => Enabled { config, ..digest },
            None => Enabled::new(config),
        });
        put(&mut self.enabled, &id, restored);
    }

    /// Takes a message of the data plane at `now` in µs; one that waits or is not yet
    /// acknowledged is dropped.
    pub(crate) fn add(&mut self, id: u32, data: v1::P4Data, now: u64) {
        let Some(digest) = self.enabled.get_mut(&id) else {
            return;
        };
        digest.forget(now);
        if !digest.known.insert(data.encode_to_vec()) {
            return;
        }
        if digest.waiting.is_empty() {
            digest.since = now;
        }
        digest.waiting.push(data);
    }

    /// The next list that is due at `now` in µs.
    pub(crate) fn poll(&mut self, now: u64) -> Option<v1::DigestList> {
        let (id, digest) = self.enabled.iter_mut().find(|(_, it)| it.is_due(now))?;
        let size = digest.size().min(digest.waiting.len());
        let data: Vec<v1::P4Data> = digest.waiting.drain(..size).collect();
        let list_id = digest.next_list;
        digest.next_list += 1;
        if digest.config.ack_timeout_ns > 0 {
            let encoded = data.iter().map(Message::encode_to_vec).collect();
            digest.sent.insert(list_id, (now, encoded));
            if digest.sent.len() > MAX_UNACKNOWLEDGED
                && let Some(oldest) = digest.sent.keys().next().copied()
            {
                digest.release(oldest);
            }
        } else {
            for data in &data {
                digest.known.remove(&data.encode_to_vec());
            }
        }
        Some(v1::DigestList {
            digest_id: *id,
            list_id,
            data,
            timestamp: 0,
        })
    }

    /// When the next list is due, in µs.
    pub(crate) fn due(&self) -> Option<u64> {
        let digests = self.enabled.values();
        digests
            .filter(|digest| !digest.waiting.is_empty())
            .map(|digest| {
                if digest.waiting.len() >= digest.size() {
                    digest.since
                } else {
                    digest.since.saturating_add(digest.timeout())
                }
            })
            .min()
    }

    /// Takes an acknowledgement.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` for a list that was not sent, or is forgotten.
    pub(crate) fn acknowledge(&mut self, ack: &v1::DigestListAck) -> Result<(), Refusal> {
        let digest = self.enabled.get_mut(&ack.digest_id);
        let found = digest.is_some_and(|digest| {
            digest.release(ack.list_id)
                // Without a timeout no list waits.
                || (digest.config.ack_timeout_ns == 0 && ack.list_id < digest.next_list)
        });
        if found {
            Ok(())
        } else {
            Err(Refusal::not_found(format!(
                "no list {} of digest {} waits for an acknowledgement",
                ack.list_id, ack.digest_id
            )))
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.enabled.clear();
    }
}
