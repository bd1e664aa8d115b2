//! A port on capture files: frames from one, frames to another
//! (pcap, draft-ietf-opsawg-pcap; pcapng, draft-ietf-opsawg-pcapng; reading only).

mod network;
mod source;

use self::source::{Record, Source};
use super::packet_socket::BURST;
use super::{HostPortCounters, PortError, PortNotice};
pub use network::{CapturedPacket, read_packets};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

/// Link types of captures that stand for a port.
const FRAMES: &[DataLink] = &[DataLink::ETHERNET];

/// Maximum total size in bytes of the frames that [`read_capture`] reads.
const MOST_BYTES: usize = 1 << 30;

/// All frames of a capture, each with its time since the first.
///
/// # Errors
///
/// [`PortError::Capture`] if it cannot be read, is cut short, or has more than 1 GiB of
/// frames.
pub fn read_capture(path: &Path) -> Result<Vec<(Duration, Vec<u8>)>, PortError> {
    let records = records(path, FRAMES)?;
    Ok(records.into_iter().map(|of| (of.at, of.bytes)).collect())
}

fn records(path: &Path, links: &'static [DataLink]) -> Result<Vec<Record>, PortError> {
    let failed = |cause: String| PortError::Capture {
        path: path.to_owned(),
        cause,
    };
    let mut source = Source::open(path, links)?;
    let (mut records, mut bytes) = (Vec::new(), 0);
    while let Some(next) = source.next() {
        let record = next.map_err(failed)?;
        bytes += record.bytes.len();
        if bytes > MOST_BYTES {
            return Err(failed(format!(
                "its frames have more than {MOST_BYTES} bytes"
            )));
        }
        records.push(record);
    }
    Ok(records)
}

/// Frames of one capture in, those sent into another.
pub(crate) struct CapturePort {
    name: String,
    input: Option<Source>,
    output: Option<PcapWriter<BufWriter<File>>>,
    timed: bool,
    /// The clock in µs at the capture's first frame.
    started: Option<u64>,
    /// Read, and not yet due.
    next: Option<(Duration, Vec<u8>)>,
    burst: Vec<Vec<u8>>,
    counters: HostPortCounters,
    notices: Vec<PortNotice>,
}

impl CapturePort {
    pub(crate) fn open(
        input: Option<&Path>,
        output: Option<&Path>,
        timed: bool,
    ) -> Result<CapturePort, PortError> {
        let name = [input, output]
            .map(|path| path.map_or("-".to_owned(), |path| path.display().to_string()))
            .join(" to ");
        let mut port = CapturePort {
            name,
            input: input.map(|path| Source::open(path, FRAMES)).transpose()?,
            output: output.map(create).transpose()?,
            timed,
            started: None,
            next: None,
            burst: Vec::with_capacity(BURST),
            counters: HostPortCounters::default(),
            notices: Vec::new(),
        };
        port.advance();
        Ok(port)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn counters(&self) -> HostPortCounters {
        self.counters
    }

    pub(crate) fn take_notices(&mut self) -> Vec<PortNotice> {
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.next.is_none()
    }

    /// When the next frame is due, in µs of the clock that shows `now_us`.
    pub(crate) fn due(&mut self, now_us: u64) -> Option<u64> {
        let (time, _) = self.next.as_ref()?;
        if !self.timed {
            return Some(now_us);
        }
        let started = *self.started.get_or_insert(now_us);
        Some(started + micros(*time))
    }

    /// Takes the frames that are due, at most a burst.
    pub(crate) fn receive(&mut self, now_us: u64) -> usize {
        self.burst.clear();
        self.started.get_or_insert(now_us);
        while self.burst.len() < BURST && self.due(now_us).is_some_and(|due| due <= now_us) {
            if let Some((_, frame)) = self.next.take() {
                self.burst.push(frame);
            }
            self.advance();
        }
        self.counters.received += self.burst.len() as u64;
        if self.next.is_none() && !self.burst.is_empty() {
            self.notices.push(PortNotice::CaptureEnded {
                frames: self.counters.received,
            });
        }
        self.burst.len()
    }

    /// Frame `next` of the burst, however long.
    pub(crate) fn as_received(&self, next: usize) -> &[u8] {
        &self.burst[next]
    }

    pub(crate) fn frame(&mut self, next: usize) -> Option<&mut [u8]> {
        if self.burst[next].len() > stateplane_switch::MAX_FRAME {
            self.counters.rx_too_long += 1;
            return None;
        }
        Some(&mut self.burst[next])
    }

    pub(crate) fn send(&mut self, frames: &[Vec<u8>], now_us: u64) {
        let Some(output) = &mut self.output else {
            self.counters.sent += frames.len() as u64;
            return;
        };
        let started = *self.started.get_or_insert(now_us);
        let time = Duration::from_micros(now_us.saturating_sub(started));
        for frame in frames {
            match output.write_packet(&PcapPacket::new(time, frame.len() as u32, frame)) {
                Ok(_) => self.counters.sent += 1,
                Err(error) => {
                    if self.counters.tx_refused == 0 {
                        let notice = PortNotice::CaptureFailed(error.to_string());
                        self.notices.push(notice);
                    }
                    self.counters.tx_refused += 1;
                }
            }
        }
    }

    /// Writes what is buffered.
    pub(crate) fn close(&mut self) {
        if let Some(output) = self.output.take()
            && let Err(error) = output.into_writer().into_inner()
        {
            self.notices
                .push(PortNotice::CaptureFailed(error.to_string()));
        }
    }

    fn advance(&mut self) {
        self.next = match self.input.as_mut().and_then(Source::next) {
            Some(Ok(record)) => Some((record.at, record.bytes)),
            Some(Err(cause)) => {
                self.counters.rx_failed += 1;
                self.notices.push(PortNotice::CaptureDamaged(cause));
                None
            }
            None => None,
        };
    }
}

fn create(path: &Path) -> Result<PcapWriter<BufWriter<File>>, PortError> {
    let failed = |cause: String| PortError::Unwritable {
        path: path.to_owned(),
        cause,
    };
    let file = File::create(path).map_err(|error| failed(error.to_string()))?;
    let header = PcapHeader {
        snaplen: stateplane_switch::MAX_FRAME as u32,
        ..PcapHeader::default()
    };
    PcapWriter::with_header(BufWriter::new(file), header).map_err(|error| failed(error.to_string()))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcap::RawPcapPacket;

    fn written(frames: &[(u64, &[u8])]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = create(file.path()).unwrap();
        for (time, frame) in frames {
            let time = Duration::from_micros(*time);
            writer
                .write_packet(&PcapPacket::new(time, frame.len() as u32, frame))
                .unwrap();
        }
        writer.into_writer().into_inner().unwrap();
        file
    }

    fn bursts(port: &mut CapturePort, now_us: u64) -> Vec<Vec<u8>> {
        let count = port.receive(now_us);
        (0..count)
            .filter_map(|next| port.frame(next).map(|frame| frame.to_vec()))
            .collect()
    }

    #[test]
    fn frames_come_at_once_or_at_their_times() {
        let file = written(&[(1_000, b"one"), (1_000, b"two"), (5_000, b"three")]);
        let mut port = CapturePort::open(Some(file.path()), None, false).unwrap();
        assert_eq!(
            bursts(&mut port, 70),
            [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]
        );
        assert!(port.has_ended());

        let mut port = CapturePort::open(Some(file.path()), None, true).unwrap();
        assert_eq!(port.due(70), Some(70));
        assert_eq!(bursts(&mut port, 70), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(port.due(80), Some(4_070));
        assert!(bursts(&mut port, 4_069).is_empty());
        assert_eq!(bursts(&mut port, 4_070), [b"three".to_vec()]);
        assert_eq!(port.due(4_070), None);
    }

    #[test]
    fn frames_that_were_cut_short_are_what_was_kept_of_them() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let header = PcapHeader {
            snaplen: 4,
            ts_resolution: pcap_file::TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let mut writer = PcapWriter::with_header(file.reopen().unwrap(), header).unwrap();
        for (ts_frac, orig_len, kept) in [(0, 1500, &b"head"[..]), (7_000, 3, b"all")] {
            let packet = RawPcapPacket {
                ts_sec: 5,
                ts_frac,
                incl_len: kept.len() as u32,
                orig_len,
                data: kept.into(),
            };
            writer.write_raw_packet(&packet).unwrap();
        }
        let mut port = CapturePort::open(Some(file.path()), None, true).unwrap();
        assert_eq!(bursts(&mut port, 0), [b"head".to_vec()]);
        assert_eq!(port.due(0), Some(7));
        assert_eq!(bursts(&mut port, 7), [b"all".to_vec()]);
        assert!(matches!(
            port.take_notices()[..],
            [PortNotice::CaptureEnded { frames: 2 }]
        ));
    }

    #[test]
    fn what_is_sent_can_be_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut port = CapturePort::open(None, Some(file.path()), false).unwrap();
        port.send(&[b"first".to_vec()], 10);
        port.send(&[b"second".to_vec()], 25);
        port.close();
        let mut port = CapturePort::open(Some(file.path()), None, true).unwrap();
        assert_eq!(bursts(&mut port, 0), [b"first".to_vec()]);
        assert_eq!(port.due(0), Some(15));
    }

    #[test]
    fn damaged_captures_end_with_a_notice() {
        let file = written(&[(0, b"whole"), (1, b"cut")]);
        let length = file.as_file().metadata().unwrap().len();
        file.as_file().set_len(length - 2).unwrap();
        let mut port = CapturePort::open(Some(file.path()), None, false).unwrap();
        assert_eq!(bursts(&mut port, 0), [b"whole".to_vec()]);
        let notices = port.take_notices();
        let [
            PortNotice::CaptureDamaged(cause),
            PortNotice::CaptureEnded { frames: 1 },
        ] = &notices[..]
        else {
            panic!("{notices:?}");
        };
        // Behind the file's header and the first record.
        assert!(cause.starts_with("record 2, at byte 45: "), "{cause}");
        let error = read_capture(file.path()).unwrap_err();
        assert!(
            error.to_string().contains("record 2, at byte 45"),
            "{error}"
        );
    }

    /// A capture as bytes, whose link type says that a check sequence of four bytes follows.
    #[test]
    fn check_sequences_are_not_of_the_frames() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = Vec::new();
        let fields = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 0x2400_0001];
        for field in fields {
            bytes.extend(field.to_le_bytes());
        }
        for (kept, length) in [(&b"frame+FCS"[..], 9_u32), (b"cut", 20)] {
            for field in [0, 0, kept.len() as u32, length] {
                bytes.extend(field.to_le_bytes());
            }
            bytes.extend(kept);
        }
        std::fs::write(file.path(), &bytes).unwrap();
        let frames = read_capture(file.path()).unwrap();
        let frames: Vec<&[u8]> = frames.iter().map(|(_, frame)| &frame[..]).collect();
        assert_eq!(frames, [&b"frame"[..], b"cut"]);
        // Raw IP is no Ethernet, with or without the bits.
        bytes[20] = 101;
        std::fs::write(file.path(), &bytes).unwrap();
        let error = read_capture(file.path()).unwrap_err();
        assert!(error.to_string().contains("link type 101"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "not a capture, but long enough for a header").unwrap();
        let error = CapturePort::open(Some(file.path()), None, false)
            .err()
            .unwrap();
        assert_eq!(error.code(), "H207");
        let error = CapturePort::open(Some(Path::new("/no/such/file")), None, false);
        assert_eq!(error.err().unwrap().code(), "H207");
    }
}
