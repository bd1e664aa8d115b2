//! The entry inside an UPDATE: what the head decided, and about which request.

use core::net::SocketAddrV4;

use crate::error::{exactly, split};
use crate::replication::{KEY_LENGTH, Key};
use crate::table::header;
use crate::{Error, Header};

header! {
    layout pub ENTRY_LAYOUT = "chain entry",
        then "the request as the head received it; of an expiry the key (16 bytes)";
    length pub ENTRY_HEADER_LENGTH = 24;
    /// Fields of an entry; one that a decision does not use is 0.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Fixed {}
    offsets entry_field;
    fields {
        DECISION        8 decision: u8 =>
            "1 grant, 2 write, 3 renewal, 4 probe, 5 refusal, 6 expiry, 7 release";
        FLAGS           8 flags: u8 =>
            "1 the lease is shared; 2 a record is made; 8 the write's state replaces the \
             record's; the others are the kind of creation: 0 a record of zero state, 4 a \
             mapping, 16 a flow given to a server";
        CODE           16 code: u16 => "refusals: why";
        LEASE_EPOCH    32 lease_epoch: u32 =>
            "grants: the epoch granted; refusals: the present epoch";
        SWITCH         48 switch: SocketAddrV4 =>
            "address and UDP port of the switch that the tail answers";
        PAYLOAD        48 payload: [u8; 6] =>
            "grants that make a record, by kind of creation: 4 public port (2) and address (4) \
             of a mapping; 16 port (2) and address (4) of the server that has the flow";
        HOLDER         16 holder: u16 =>
            "shared grants: which place among the record's holders is taken, at most 32767; \
             32768 more if earlier claims of the same start of the switch go first (rule 18)";
        SHARD          16 shard: u16 => "expiries: the shard of the key";
    }
}

/// Bits of an entry's flags. All others are 0.
pub mod entry_flag {
    /// Grants: the lease is shared.
    pub const SHARED: u8 = 1 << 0;
    /// Grants: a record is made.
    pub const CREATE: u8 = 1 << 1;
    /// Writes: the request's state and sequence replace the record's.
    pub const INSTALL: u8 = 1 << 3;
    /// Grants that make a record: the bits that hold the kind of creation.
    pub const KIND: u8 = !(SHARED | CREATE | INSTALL);
}

/// Bit of the field `holder`: earlier claims of the same start of the switch go first.
const DROPS: u16 = 1 << 15;

/// Greatest place among the holders of a shared lease.
pub const LAST_PLACE: u16 = DROPS - 1;

/// Place that a shared grant takes among the holders of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HolderPlace {
    /// Number of the place from 0, at most [`LAST_PLACE`], counted when those are gone that
    /// `drops` says.
    pub at: u16,
    /// True if earlier claims of the same start of the switch go first (rule 18). False of a grant
    /// that is repeated, and of those that a head of before this rule decided.
    pub drops: bool,
}

impl HolderPlace {
    fn of_field(field: u16) -> HolderPlace {
        HolderPlace {
            at: field & LAST_PLACE,
            drops: field & DROPS != 0,
        }
    }

    fn field(self) -> u16 {
        self.at & LAST_PLACE | if self.drops { DROPS } else { 0 }
    }
}

/// Creation of a first state before a grant, as the store's creators understand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    /// Which creator makes it, in the bits [`entry_flag::KIND`]; 0: a record of zero state.
    pub kind: u8,
    /// Bytes from which that creator makes it; 0 for kind 0.
    pub payload: [u8; 6],
}

/// Decision of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A lease is granted, or the grant that the asker already has is repeated.
    Grant {
        /// The epoch granted.
        lease_epoch: u32,
        /// `Some` place among the holders if the lease is shared.
        holder: Option<HolderPlace>,
        /// Creation of the first state of a flow without a record.
        creation: Option<Creation>,
    },
    /// A write of the present owner is acknowledged.
    Write {
        /// True if its state is newer than the record's and replaces it.
        install: bool,
    },
    /// The packet of a present holder's renewal goes back.
    Renew,
    /// The switch asked whether the chain is alive.
    Probe,
    /// The request is refused.
    Refuse {
        /// Why, a [`crate::replication::RefusalCode`].
        code: u8,
        /// The flow's present epoch.
        lease_epoch: u32,
    },
    /// An idle record, and the record mapped to it, are forgotten.
    Expire {
        /// The shard of the key.
        shard: u16,
        /// The key of the record.
        key: Key,
    },
    /// A holder gave its lease up; its epoch is the request's.
    Release,
}

impl Fixed {
    /// The code of a refusal.
    fn code(&self) -> Result<u8, Error> {
        u8::try_from(self.code).map_err(|_| Error::Unknown {
            header: Header::ChainEntry,
            field: "code",
            found: self.code.into(),
        })
    }

    /// Creation by a grant.
    fn creation(&self) -> Option<Creation> {
        let kind = self.flags & entry_flag::KIND;
        let payload = if kind == 0 { [0; 6] } else { self.payload };
        (self.flags & entry_flag::CREATE != 0).then_some(Creation { kind, payload })
    }
}

impl Decision {
    fn number(&self) -> u8 {
        match self {
            Decision::Grant { .. } => 1,
            Decision::Write { .. } => 2,
            Decision::Renew => 3,
            Decision::Probe => 4,
            Decision::Refuse { .. } => 5,
            Decision::Expire { .. } => 6,
            Decision::Release => 7,
        }
    }
}

/// One entry: a decision and the request that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Decision of the head.
    pub decision: Decision,
    /// Whom the tail answers; 0.0.0.0:0 in an expiry.
    pub switch: SocketAddrV4,
    /// The request as the head received it; empty in an expiry.
    pub request: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads an entry from the body of an UPDATE. The request is not looked into.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`]; [`Error::Unknown`] for a decision without meaning,
    /// flags that do not belong to it, or a set field that it does not use;
    /// [`Error::TrailingBytes`] for an expiry with more than a key.
    pub fn parse(bytes: &'a [u8]) -> Result<Entry<'a>, Error> {
        let header = Header::ChainEntry;
        let (bytes, mut request) = split(header, bytes)?;
        let fixed = Fixed::from_header(bytes);
        let Fixed {
            flags, lease_epoch, ..
        } = fixed;
        let decision = match fixed.decision {
            1 => Decision::Grant {
                lease_epoch,
                holder: (flags & entry_flag::SHARED != 0)
                    .then(|| HolderPlace::of_field(fixed.holder)),
                creation: fixed.creation(),
            },
            2 => Decision::Write {
                install: flags & entry_flag::INSTALL != 0,
            },
            3 => Decision::Renew,
            4 => Decision::Probe,
            5 => Decision::Refuse {
                code: fixed.code()?,
                lease_epoch,
            },
            6 => {
                let (key, rest) = split(header, request)?;
                if !rest.is_empty() {
                    return Err(Error::TrailingBytes {
                        header,
                        extra: rest.len(),
                    });
                }
                request = &[];
                Decision::Expire {
                    shard: fixed.shard,
                    key: Key(*key),
                }
            }
            7 => Decision::Release,
            found => {
                return Err(Error::Unknown {
                    header,
                    field: "decision",
                    found: found.into(),
                });
            }
        };
        let entry = Entry {
            decision,
            switch: fixed.switch,
            request,
        };
        if entry.fixed() != fixed {
            return Err(Error::Unknown {
                header,
                field: "a field that the decision does not use; flags",
                found: flags.into(),
            });
        }
        Ok(entry)
    }

    /// Bytes of the entry.
    pub fn buffer_len(&self) -> usize {
        ENTRY_HEADER_LENGTH
            + match self.decision {
                Decision::Expire { .. } => KEY_LENGTH,
                _ => self.request.len(),
            }
    }

    /// Writes the entry into `buffer`.
    ///
    /// # Errors
    ///
    /// [`Error::Buffer`] unless `buffer` is [`Entry::buffer_len`] long;
    /// [`Error::Unrepresentable`] for an expiry with a request, or a place beyond
    /// [`LAST_PLACE`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let header = Header::ChainEntry;
        exactly(header, buffer, self.buffer_len())?;
        if let Decision::Grant {
            holder: Some(HolderPlace { at, .. }),
            ..
        } = self.decision
            && at > LAST_PLACE
        {
            return Err(Error::Unrepresentable {
                header,
                field: "holder",
            });
        }
        let (fixed, subject) = buffer.split_at_mut(ENTRY_HEADER_LENGTH);
        fixed.copy_from_slice(&self.fixed().header_bytes());
        if let Decision::Expire { key, .. } = self.decision {
            if !self.request.is_empty() {
                return Err(Error::Unrepresentable {
                    header,
                    field: "request of an expiry",
                });
            }
            subject.copy_from_slice(&key.0);
        } else {
            subject.copy_from_slice(self.request);
        }
        Ok(())
    }

    fn fixed(&self) -> Fixed {
        let mut fixed = Fixed {
            decision: self.decision.number(),
            switch: self.switch,
            ..Fixed::from_header(&[0; ENTRY_HEADER_LENGTH])
        };
        match self.decision {
            Decision::Grant {
                lease_epoch,
                holder,
                creation,
            } => {
                fixed.lease_epoch = lease_epoch;
                if let Some(holder) = holder {
                    fixed.flags |= entry_flag::SHARED;
                    fixed.holder = holder.field();
                }
                if let Some(Creation { kind, payload }) = creation {
                    fixed.flags |= entry_flag::CREATE | kind & entry_flag::KIND;
                    fixed.payload = payload;
                }
            }
            Decision::Write { install } => {
                if install {
                    fixed.flags |= entry_flag::INSTALL;
                }
            }
            Decision::Renew | Decision::Probe | Decision::Release => {}
            Decision::Refuse { code, lease_epoch } => {
                (fixed.code, fixed.lease_epoch) = (code.into(), lease_epoch);
            }
            Decision::Expire { shard, .. } => fixed.shard = shard,
        }
        fixed
    }
}
