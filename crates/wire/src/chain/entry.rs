//! The entry inside an UPDATE: what the head decided, and about which request.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::big_endian::{get_array, get_u16, get_u32, put};
use crate::error::{at_least, exactly};
use crate::replication::{KEY_LENGTH, Key};
use crate::{Error, Header};

/// Length in bytes of an entry's header; the request, or an expired record's
/// key, follows.
pub const ENTRY_HEADER_LENGTH: usize = 32;

/// Where each field of an entry begins, in bytes from the start of the entry.
/// A field that a decision does not use is 0.
pub mod entry_field {
    /// 1 byte: 1 grant, 2 write, 3 renewal, 4 probe, 5 refusal, 6 expiry,
    /// 7 release.
    pub const DECISION: usize = 0;
    /// 1 byte: [`super::entry_flag`].
    pub const FLAGS: usize = 1;
    /// 2 bytes: refusals: [`crate::replication::RefusalCode`].
    pub const CODE: usize = 2;
    /// 4 bytes: grants: the epoch granted; refusals: the present epoch.
    pub const LEASE_EPOCH: usize = 4;
    /// 4 bytes: grants: µs for which the request waited at the head.
    pub const PARKED: usize = 8;
    /// 4 bytes: grants, writes, renewals: µs of lease, 0 if not renewed.
    pub const PERIOD: usize = 12;
    /// 4 bytes: address of the switch that the tail answers.
    pub const SWITCH_ADDRESS: usize = 16;
    /// 2 bytes: UDP port of the switch that the tail answers.
    pub const SWITCH_PORT: usize = 20;
    /// 2 bytes: grants that make a mapping: the public port; that give the flow to a
    /// server: its port.
    pub const PUBLIC_PORT: usize = 22;
    /// 4 bytes: grants that make a mapping: the public address; that give the flow to a
    /// server: its address.
    pub const PUBLIC_ADDRESS: usize = 24;
    /// 2 bytes: shared grants: which place among the record's holders is taken.
    pub const HOLDER: usize = 28;
    /// 2 bytes: expiries: the shard of the key.
    pub const SHARD: usize = 30;
    /// The request as the head received it; expiries: the key.
    pub const SUBJECT: usize = 32;
}

/// Bits of an entry's flags. All others are 0.
pub mod entry_flag {
    /// Grants: the lease is shared.
    pub const SHARED: u8 = 1 << 0;
    /// Grants: a record is made.
    pub const CREATE: u8 = 1 << 1;
    /// Grants that make a record: a public port is taken and its record is made too.
    pub const MAPPING: u8 = 1 << 2;
    /// Writes: the request's state and sequence replace the record's.
    pub const INSTALL: u8 = 1 << 3;
    /// Grants that make a record: the flow is given to a server.
    pub const SERVER: u8 = 1 << 4;
}

/// What a grant makes before it grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// A record of zero state.
    Zero,
    /// A record of a public endpoint, and the inbound record that leads back.
    Mapping {
        /// The public address taken.
        address: Ipv4Addr,
        /// The public port taken.
        port: u16,
    },
    /// A record whose state begins with the server that the flow is given to.
    Server {
        /// The server's address and port.
        server: SocketAddrV4,
    },
}

/// What the head decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A lease is granted, or the grant that the asker already has is repeated.
    Grant {
        /// The epoch granted.
        lease_epoch: u32,
        /// µs for which the request waited at the head.
        parked: u32,
        /// µs of lease, 0 if a repeated grant is not renewed.
        period: u32,
        /// `Some` place among the holders if the lease is shared.
        holder: Option<u16>,
        /// What is made first, for a flow without a record.
        creation: Option<Creation>,
    },
    /// A write of the present owner is acknowledged.
    Write {
        /// Whether its state is newer than the record's and replaces it.
        install: bool,
        /// µs of lease, 0 if not renewed.
        period: u32,
    },
    /// A renewal of a present holder is answered.
    Renew {
        /// µs of lease, 0 if not renewed.
        period: u32,
    },
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

/// The code of a refusal.
fn code(bytes: &[u8]) -> Result<u8, Error> {
    let code = get_u16(bytes, entry_field::CODE);
    u8::try_from(code).map_err(|_| Error::Unknown {
        header: Header::ChainEntry,
        field: "code",
        found: code.into(),
    })
}

/// What the grant with `flags` in the entry `bytes` makes.
fn creation(bytes: &[u8], flags: u8) -> Option<Creation> {
    let address = Ipv4Addr::from(get_array::<4>(bytes, entry_field::PUBLIC_ADDRESS));
    let port = get_u16(bytes, entry_field::PUBLIC_PORT);
    if flags & entry_flag::CREATE == 0 {
        None
    } else if flags & entry_flag::MAPPING != 0 {
        Some(Creation::Mapping { address, port })
    } else if flags & entry_flag::SERVER != 0 {
        let server = SocketAddrV4::new(address, port);
        Some(Creation::Server { server })
    } else {
        Some(Creation::Zero)
    }
}

impl Decision {
    fn number(&self) -> u8 {
        match self {
            Decision::Grant { .. } => 1,
            Decision::Write { .. } => 2,
            Decision::Renew { .. } => 3,
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
    /// What the head decided.
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
        at_least(header, bytes, ENTRY_HEADER_LENGTH)?;
        let flags = bytes[entry_field::FLAGS];
        let lease_epoch = get_u32(bytes, entry_field::LEASE_EPOCH);
        let parked = get_u32(bytes, entry_field::PARKED);
        let period = get_u32(bytes, entry_field::PERIOD);
        let mut request = &bytes[entry_field::SUBJECT..];
        let decision = match bytes[entry_field::DECISION] {
            1 => Decision::Grant {
                lease_epoch,
                parked,
                period,
                holder: (flags & entry_flag::SHARED != 0)
                    .then(|| get_u16(bytes, entry_field::HOLDER)),
                creation: creation(bytes, flags),
            },
            2 => Decision::Write {
                install: flags & entry_flag::INSTALL != 0,
                period,
            },
            3 => Decision::Renew { period },
            4 => Decision::Probe,
            5 => Decision::Refuse {
                code: code(bytes)?,
                lease_epoch,
            },
            6 => {
                at_least(header, bytes, ENTRY_HEADER_LENGTH + KEY_LENGTH)?;
                if request.len() > KEY_LENGTH {
                    return Err(Error::TrailingBytes {
                        header,
                        extra: request.len() - KEY_LENGTH,
                    });
                }
                request = &[];
                Decision::Expire {
                    shard: get_u16(bytes, entry_field::SHARD),
                    key: Key(get_array(bytes, entry_field::SUBJECT)),
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
            switch: SocketAddrV4::new(
                get_array::<4>(bytes, entry_field::SWITCH_ADDRESS).into(),
                get_u16(bytes, entry_field::SWITCH_PORT),
            ),
            request,
        };
        if entry.header() != get_array::<ENTRY_HEADER_LENGTH>(bytes, 0) {
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
    /// [`Error::Unrepresentable`] for an expiry with a request.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let header = Header::ChainEntry;
        exactly(header, buffer, self.buffer_len())?;
        put(buffer, 0, &self.header());
        if let Decision::Expire { key, .. } = self.decision {
            if !self.request.is_empty() {
                return Err(Error::Unrepresentable {
                    header,
                    field: "request of an expiry",
                });
            }
            put(buffer, entry_field::SUBJECT, &key.0);
        } else {
            put(buffer, entry_field::SUBJECT, self.request);
        }
        Ok(())
    }

    fn header(&self) -> [u8; ENTRY_HEADER_LENGTH] {
        let mut bytes = [0; ENTRY_HEADER_LENGTH];
        let mut flags = 0;
        bytes[entry_field::DECISION] = self.decision.number();
        match self.decision {
            Decision::Grant {
                lease_epoch,
                parked,
                period,
                holder,
                creation,
            } => {
                put(
                    &mut bytes,
                    entry_field::LEASE_EPOCH,
                    &lease_epoch.to_be_bytes(),
                );
                put(&mut bytes, entry_field::PARKED, &parked.to_be_bytes());
                put(&mut bytes, entry_field::PERIOD, &period.to_be_bytes());
                if let Some(holder) = holder {
                    flags |= entry_flag::SHARED;
                    put(&mut bytes, entry_field::HOLDER, &holder.to_be_bytes());
                }
                if creation.is_some() {
                    flags |= entry_flag::CREATE;
                }
                let endpoint = match creation {
                    None | Some(Creation::Zero) => None,
                    Some(Creation::Mapping { address, port }) => {
                        flags |= entry_flag::MAPPING;
                        Some((address, port))
                    }
                    Some(Creation::Server { server }) => {
                        flags |= entry_flag::SERVER;
                        Some((*server.ip(), server.port()))
                    }
                };
                if let Some((address, port)) = endpoint {
                    put(&mut bytes, entry_field::PUBLIC_ADDRESS, &address.octets());
                    put(&mut bytes, entry_field::PUBLIC_PORT, &port.to_be_bytes());
                }
            }
            Decision::Write { install, period } => {
                if install {
                    flags |= entry_flag::INSTALL;
                }
                put(&mut bytes, entry_field::PERIOD, &period.to_be_bytes());
            }
            Decision::Renew { period } => {
                put(&mut bytes, entry_field::PERIOD, &period.to_be_bytes());
            }
            Decision::Probe | Decision::Release => {}
            Decision::Refuse { code, lease_epoch } => {
                put(
                    &mut bytes,
                    entry_field::CODE,
                    &u16::from(code).to_be_bytes(),
                );
                put(
                    &mut bytes,
                    entry_field::LEASE_EPOCH,
                    &lease_epoch.to_be_bytes(),
                );
            }
            Decision::Expire { shard, .. } => {
                put(&mut bytes, entry_field::SHARD, &shard.to_be_bytes());
            }
        }
        bytes[entry_field::FLAGS] = flags;
        put(
            &mut bytes,
            entry_field::SWITCH_ADDRESS,
            &self.switch.ip().octets(),
        );
        put(
            &mut bytes,
            entry_field::SWITCH_PORT,
            &self.switch.port().to_be_bytes(),
        );
        bytes
    }
}
