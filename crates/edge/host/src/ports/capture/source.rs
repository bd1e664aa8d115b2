//! Frames of a capture file, one after the other.

use crate::ports::PortError;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, TsResolution};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// First four bytes of a pcapng file: a section header.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Bytes of a pcap's header, and of that of a record.
const FILE_HEADER: u64 = 24;
const RECORD_HEADER: u64 = 16;

/// An open capture.
pub(super) struct Source {
    format: Format,
    /// Time of the first frame.
    start: Option<Duration>,
    path: PathBuf,
    /// Records read: of a pcapng, blocks.
    records: u64,
    /// Byte of a pcap at which the next record begins.
    offset: u64,
    /// Bytes of a frame's check sequence behind each frame that was kept whole.
    check_bytes: usize,
    /// Link types that are read.
    links: &'static [DataLink],
}

/// A record of a capture.
pub(super) struct Record {
    /// Time since the first.
    pub(super) at: Duration,
    /// Its link type.
    pub(super) link: DataLink,
    /// Bytes that were on the wire, without a check sequence.
    pub(super) length: usize,
    /// Those that were kept.
    pub(super) bytes: Vec<u8>,
}

enum Format {
    Pcap(Box<PcapReader<BufReader<File>>>),
    PcapNg(Box<PcapNgReader<BufReader<File>>>),
}

impl Source {
    /// Opens a capture, of which records of `links` are read and others refused.
    pub(super) fn open(path: &Path, links: &'static [DataLink]) -> Result<Source, PortError> {
        let failed = |cause: String| PortError::Capture {
            path: path.to_owned(),
            cause,
        };
        let open = || -> Result<Format, String> {
            let mut file = File::open(path).map_err(|error| error.to_string())?;
            let mut magic = [0; 4];
            file.read_exact(&mut magic)
                .map_err(|_| "it is shorter than a capture's header".to_owned())?;
            file.rewind().map_err(|error| error.to_string())?;
            let file = BufReader::new(file);
            if magic == SECTION_HEADER {
                let reader = PcapNgReader::new(file).map_err(|error| error.to_string())?;
                return Ok(Format::PcapNg(Box::new(reader)));
            }
            let reader = PcapReader::new(file).map_err(|error| error.to_string())?;
            check_link_type(link_type(reader.header().datalink).0, links)?;
            Ok(Format::Pcap(Box::new(reader)))
        };
        let format = open().map_err(failed)?;
        let check_bytes = match &format {
            Format::Pcap(reader) => link_type(reader.header().datalink).1,
            Format::PcapNg(_) => 0,
        };
        Ok(Source {
            format,
            start: None,
            path: path.to_owned(),
            records: 0,
            offset: FILE_HEADER,
            check_bytes,
            links,
        })
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Option<Result<Record, String>> {
        let first = self.records;
        let read = self.format.next(&mut self.records, self.links)?;
        let mut record = match read {
            Ok(record) => record,
            Err(cause) => return Some(Err(self.at(first, &cause))),
        };
        self.offset += RECORD_HEADER + record.bytes.len() as u64;
        if record.bytes.len() >= record.length {
            let without = record.bytes.len().saturating_sub(self.check_bytes);
            record.bytes.truncate(without);
        }
        record.length = record.length.saturating_sub(self.check_bytes);
        let start = *self.start.get_or_insert(record.at);
        record.at = record.at.saturating_sub(start);
        Some(Ok(record))
    }

    /// The cause with the place of the record that has it; `first` is the number of records
    /// before the call that met it.
    fn at(&self, first: u64, cause: &str) -> String {
        match &self.format {
            Format::Pcap(_) => {
                let number = first + 1;
                format!("record {number}, at byte {}: {cause}", self.offset)
            }
            Format::PcapNg(_) => {
                let number = self.records;
                match block_offset(&self.path, number) {
                    Some(offset) => format!("block {number}, at byte {offset}: {cause}"),
                    None => format!("block {number}: {cause}"),
                }
            }
        }
    }
}

/// Byte at which the block of a number, counted from 1, of a pcapng begins.
fn block_offset(path: &Path, number: u64) -> Option<u64> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let mut offset = 0;
    let mut big_endian = false;
    // The reader takes the first section header when it opens the file.
    for _ in 0..number {
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut head = [0; 12];
        file.read_exact(&mut head).ok()?;
        let [a, b, c, d] = [head[4], head[5], head[6], head[7]];
        if head[..4] == SECTION_HEADER {
            big_endian = head[8..] == [0x1a, 0x2b, 0x3c, 0x4d];
        }
        let length = if big_endian {
            u32::from_be_bytes([a, b, c, d])
        } else {
            u32::from_le_bytes([a, b, c, d])
        };
        offset += u64::from(length.max(12));
    }
    Some(offset)
}

/// The link type of a pcap's header without the bits that tell of check sequences, and the bytes
/// of these behind each frame (draft-ietf-opsawg-pcap, "File Header").
fn link_type(field: DataLink) -> (DataLink, usize) {
    /// Bit that says that the highest four are valid.
    const CHECKED: u32 = 1 << 26;
    let field = u32::from(field);
    let words = match field & CHECKED {
        0 => 0,
        _ => field >> 28,
    };
    (DataLink::from(field & 0xffff), words as usize * 2)
}

impl Format {
    /// The next record, with its absolute time. `records` counts what is read.
    fn next(
        &mut self,
        records: &mut u64,
        links: &'static [DataLink],
    ) -> Option<Result<Record, String>> {
        match self {
            // Raw: a frame may be longer than what was kept of it.
            Format::Pcap(reader) => {
                let fraction = match reader.header().ts_resolution {
                    TsResolution::MicroSecond => Duration::from_micros,
                    TsResolution::NanoSecond => Duration::from_nanos,
                };
                let link = link_type(reader.header().datalink).0;
                let packet = reader.next_raw_packet()?;
                *records += 1;
                Some(match packet {
                    Ok(packet) => {
                        let seconds = Duration::from_secs(packet.ts_sec.into());
                        Ok(Record {
                            at: seconds + fraction(packet.ts_frac.into()),
                            link,
                            length: packet.orig_len as usize,
                            bytes: packet.data.into_owned(),
                        })
                    }
                    Err(error) => Err(error.to_string()),
                })
            }
            Format::PcapNg(reader) => loop {
                let block = reader.next_block()?;
                *records += 1;
                let (interface, ticks, length, bytes) = match block {
                    Ok(Block::EnhancedPacket(packet)) => {
                        // The reader takes ticks for nanoseconds, whatever they are.
                        let ticks = packet.timestamp.as_nanos() as u64;
                        let length = packet.original_len;
                        (packet.interface_id, ticks, length, packet.data.into_owned())
                    }
                    Ok(Block::SimplePacket(packet)) => {
                        (0, 0, packet.original_len, packet.data.into_owned())
                    }
                    Ok(_) => continue,
                    Err(error) => return Some(Err(error.to_string())),
                };
                let Some(interface) = reader.interfaces().get(interface as usize) else {
                    return Some(Err("a packet of an interface that is not described".into()));
                };
                if let Err(cause) = check_link_type(interface.linktype, links) {
                    return Some(Err(cause));
                }
                return Some(Ok(Record {
                    at: time(interface, ticks),
                    link: interface.linktype,
                    length: length as usize,
                    bytes,
                }));
            },
        }
    }
}

/// The time of `ticks` in the resolution that `interface` states (`if_tsresol`; µs if it
/// states none).
fn time(interface: &InterfaceDescriptionBlock<'_>, ticks: u64) -> Duration {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    let resolution = resolution.unwrap_or(6);
    let exponent = u32::from(resolution & 0x7f);
    let base = if resolution & 0x80 == 0 { 10_u128 } else { 2 };
    let per_second = base.checked_pow(exponent).unwrap_or(u128::MAX);
    let nanoseconds = (u128::from(ticks) * 1_000_000_000)
        .checked_div(per_second)
        .unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

fn check_link_type(link: DataLink, links: &[DataLink]) -> Result<(), String> {
    if links.contains(&link) {
        return Ok(());
    }
    let number = u32::from(link);
    Err(if links == [DataLink::ETHERNET] {
        format!(
            "its packets are of link type {number} ({link:?}), not Ethernet frames; ports carry Ethernet (editcap and tcprewrite convert)"
        )
    } else {
        format!(
            "its packets are of link type {number} ({link:?}); give a capture of Ethernet, raw IP or Linux's cooked packets"
        )
    })
}
