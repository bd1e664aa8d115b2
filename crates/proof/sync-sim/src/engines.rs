//! The host of the engines: one that serves, and those that were replaced and live on.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_sync::{Engine, Settings, SettingsError};
use stateplane_wire::{ethernet, ipv4, sync, udp};
use stateplane_world::Node;

use crate::device::SWITCH_ADDRESS;
use crate::program::GROUPS;
use crate::scenario::Scenario;
use crate::totals::Totals;

/// Values in a message: SYNC_BATCH of the switch's program.
pub(crate) const BATCH: u32 = 4;

/// Frozen values in a message: SYNC_FETCH of the switch's program.
pub(crate) const FETCH: u32 = 4;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

/// A start of an engine process: an engine for each group.
pub(crate) struct Process {
    pub(crate) port: u16,
    /// Its term, and the candidate that it is of.
    pub(crate) term: u64,
    pub(crate) candidate: usize,
    /// It stands still.
    pub(crate) is_asleep: bool,
    pub(crate) groups: Vec<Engine>,
    pub(crate) totals: Vec<Totals>,
    /// Writes that ended as done since the view began, and those that did not end.
    pub(crate) done: u64,
    pub(crate) open: u64,
}

impl Process {
    pub(crate) fn start(
        number: u16,
        term: u64,
        scenario: &Scenario,
        now: u64,
        nonce: u32,
        kept: impl Fn(u16) -> Vec<(u32, u32)>,
        totals: Vec<Totals>,
    ) -> Result<Self, SettingsError> {
        let group = |group: u16| {
            let settings = Settings {
                group,
                locations: scenario.locations,
                batch: BATCH,
                poll_us: 200,
                retry_us: 1_000,
                term,
                nonce,
            };
            let mut last = kept(group);
            last.sort_unstable();
            let mut engine = Engine::new(settings, now, last)?;
            let of = &scenario.program.groups()[usize::from(group)];
            if of.counted.is_some() {
                engine.continue_counters(of.bits(), totals[usize::from(group)].kept());
            }
            Ok(engine)
        };
        Ok(Self {
            port: 5000 + number,
            term,
            candidate: 0,
            is_asleep: false,
            groups: (0..GROUPS as u16).map(group).collect::<Result<_, _>>()?,
            totals,
            done: 0,
            open: 0,
        })
    }

    fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(HOST, self.port)
    }
}

/// All processes, as the world drives them.
pub(crate) struct Host {
    pub(crate) processes: Vec<Process>,
    /// Terms of the processes that sent something since this was looked at.
    pub(crate) acted: Vec<u64>,
}

impl Host {
    /// Processes that do not stand still.
    fn awake(&mut self) -> impl Iterator<Item = &mut Process> {
        let processes = self.processes.iter_mut();
        processes.filter(|process| !process.is_asleep)
    }
}

impl Node for Host {
    type Message = Vec<u8>;
    type Transmit = Vec<u8>;

    fn handle_message(&mut self, now: u64, _: u16, _: stateplane_world::NodePort, frame: Vec<u8>) {
        let Some((to, bytes)) = datagram(&frame) else {
            return;
        };
        for process in self.awake().filter(|process| process.address() == to) {
            for engine in &mut process.groups {
                engine.handle_datagram(now, bytes);
            }
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        for process in self.awake() {
            for engine in &mut process.groups {
                engine.handle_timeout(now);
            }
        }
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Vec<u8>> {
        let (term, frame) = self.awake().find_map(|process| {
            let from = process.address();
            let mut engines = process.groups.iter_mut();
            let bytes = engines.find_map(Engine::poll_transmit)?;
            Some((process.term, frame(from, &bytes)))
        })?;
        self.acted.push(term);
        Some(frame)
    }

    fn poll_timeout(&self) -> Option<u64> {
        let awake = self.processes.iter().filter(|process| !process.is_asleep);
        let engines = awake.flat_map(|process| &process.groups);
        engines.filter_map(Engine::poll_timeout).min()
    }
}

/// A frame with a datagram to the switch.
fn frame(from: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: from.port(),
        destination_port: sync::PORT,
        payload,
    };
    let segment = datagram
        .to_vec(*from.ip(), SWITCH_ADDRESS)
        .unwrap_or_default();
    packet(*from.ip(), SWITCH_ADDRESS, ipv4::PROTOCOL_UDP, &segment)
}

/// A frame with an IPv4 packet.
pub(crate) fn packet(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let packet = ipv4::Repr::new(from, to, protocol, payload);
    let mut frame = vec![2; 12];
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(packet.to_vec().unwrap_or_default());
    frame
}

/// Destination and bytes of the datagram in a frame; `None` if a host would not take it.
pub(crate) fn datagram(frame: &[u8]) -> Option<(SocketAddrV4, &[u8])> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    let packet = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    if !packet.verify_checksum() || packet.protocol() != ipv4::PROTOCOL_UDP {
        return None;
    }
    let segment = udp::Packet::new_checked(packet.payload()).ok()?;
    let to = SocketAddrV4::new(packet.destination(), segment.destination_port());
    Some((to, segment.payload()))
}
