//! Frames of a capture file, one after the other.

use crate::ports::PortError;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, TsResolution};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::time::Duration;

/// First four bytes of a pcapng file: a section header.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// An open capture.
pub(super) struct Source {
    format: Format,
    /// Time of the first frame.
    start: Option<Duration>,
}

enum Format {
    Pcap(Box<PcapReader<BufReader<File>>>),
    PcapNg(Box<PcapNgReader<BufReader<File>>>),
}

impl Source {
    /// Opens a capture of Ethernet frames.
    pub(super) fn open(path: &Path) -> Result<Source, PortError> {
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
            check_link_type(reader.header().datalink)?;
            Ok(Format::Pcap(Box::new(reader)))
        };
        Ok(Source {
            format: open().map_err(failed)?,
            start: None,
        })
    }

    /// The next frame and its time since the first.
    pub(super) fn next(&mut self) -> Option<Result<(Duration, Vec<u8>), String>> {
        let (time, frame) = match self.format.next()? {
            Ok(frame) => frame,
            Err(cause) => return Some(Err(cause)),
        };
        let start = *self.start.get_or_insert(time);
        Some(Ok((time.saturating_sub(start), frame)))
    }
}

impl Format {
    fn next(&mut self) -> Option<Result<(Duration, Vec<u8>), String>> {
        match self {
            // Raw: a frame may be longer than what was kept of it.
            Format::Pcap(reader) => {
                let fraction = match reader.header().ts_resolution {
                    TsResolution::MicroSecond => Duration::from_micros,
                    TsResolution::NanoSecond => Duration::from_nanos,
                };
                Some(match reader.next_raw_packet()? {
                    Ok(packet) => {
                        let seconds = Duration::from_secs(packet.ts_sec.into());
                        let time = seconds + fraction(packet.ts_frac.into());
                        Ok((time, packet.data.into_owned()))
                    }
                    Err(error) => Err(error.to_string()),
                })
            }
            Format::PcapNg(reader) => loop {
                let (interface, ticks, frame) = match reader.next_block()? {
                    Ok(Block::EnhancedPacket(packet)) => {
                        // The reader takes ticks for nanoseconds, whatever they are.
                        let ticks = packet.timestamp.as_nanos() as u64;
                        (packet.interface_id, ticks, packet.data.into_owned())
                    }
                    Ok(Block::SimplePacket(packet)) => (0, 0, packet.data.into_owned()),
                    Ok(_) => continue,
                    Err(error) => return Some(Err(error.to_string())),
                };
                let Some(interface) = reader.interfaces().get(interface as usize) else {
                    return Some(Err("a packet of an interface that is not described".into()));
                };
                if let Err(cause) = check_link_type(interface.linktype) {
                    return Some(Err(cause));
                }
                return Some(Ok((time(interface, ticks), frame)));
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

fn check_link_type(link: DataLink) -> Result<(), String> {
    if link == DataLink::ETHERNET {
        Ok(())
    } else {
        Err(format!(
            "its packets are {link:?}, not Ethernet frames; ports carry Ethernet (editcap and tcprewrite convert)"
        ))
    }
}
