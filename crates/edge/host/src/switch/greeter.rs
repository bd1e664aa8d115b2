//! A switch's half of greetings: it tells the heads of its chains its settings, says what differs,
//! and which of them it cannot reach. Until one of them fits, the data ports stay down.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde::Serialize;
use stateplane_setup::Flows;
use stateplane_switch::Port;
use stateplane_wire::greeting::{Greeting, PROGRAM, Setting, SettingName};
use stateplane_wire::{ethernet, ipv4, replication, udp};

use super::neighbours::Arp;
use crate::greeting::Difference;
use crate::ports::MacAddress;

mod filter;
mod words;

pub(super) use filter::{FrameKind, GreetingFilter, datagram};
use words::{at, cause, shown};

/// µs between greetings of a head that has not answered, or does not fit.
const SOON: u64 = 200_000;
/// µs between greetings of a head that fits.
const SELDOM: u64 = 1_000_000;
/// µs without an answer after which a head counts as silent.
pub(super) const SILENCE: u64 = 1_000_000;
/// Most heads; a store has as many servers at most (`docs/replication-protocol.md`).
const MOST_HEADS: usize = 1024;
/// Shards whose chains one greeting names.
const MOST_SHARDS: usize = 16;

const IP: usize = 14;
const UDP: usize = IP + 20;
const MESSAGE: usize = UDP + 8;
const ICMP: u8 = 1;
/// Offset of the IPv4 header that an ICMP error quotes.
const QUOTED: usize = UDP + 8;

/// This switch, as the store knows it.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub switch: u32,
    pub incarnation: u32,
    pub address: Ipv4Addr,
    pub mac: MacAddress,
    /// Port towards the store.
    pub port: Port,
}

/// A head as the switch's file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadFile {
    pub address: Ipv4Addr,
    pub mac: MacAddress,
    /// Line of the file.
    pub line: Option<u32>,
}

/// Greetings of one head.
#[derive(Clone, Debug)]
struct Head {
    file: HeadFile,
    shards: BTreeSet<u16>,
    next: u64,
    asked: Option<u64>,
    heard: Option<u64>,
    silent: bool,
    /// The differences; `None` before the first answer.
    differences: Option<Vec<String>>,
    /// MAC address that answers ARP for it.
    seen: Option<MacAddress>,
    /// It said that nobody listens at the port.
    refuses: bool,
}

/// A head, as a switch reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeadReport {
    /// Its address.
    pub address: Ipv4Addr,
    /// Port of the switch that leads to it.
    pub port: Port,
    /// True if its settings fit the switch's.
    pub fits: bool,
    /// The differences, in words.
    pub differences: Vec<String>,
    /// ms for which it has not answered, if it is silent.
    pub silent_ms: Option<u64>,
}

/// Greetings of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GreetingReport {
    /// True once a head of a chain has fitted: the data ports may be up.
    pub admitted: bool,
    /// The heads.
    pub heads: Vec<HeadReport>,
}

/// Settings of the switch beside those of its program.
#[derive(Clone, Debug, Default)]
pub(super) struct Declared {
    /// Number of shards, and its line.
    pub shards: Option<(u16, Option<u32>)>,
    /// Configuration number of the chains, and its line; `None` under a controller.
    pub chain_epoch: Option<(u32, Option<u32>)>,
    /// First lease of each class that the file asks for, and its line.
    pub first_leases: Vec<(u8, u32, Option<u32>)>,
    /// Line of the switch's address.
    pub address_line: Option<u32>,
}

/// Greets heads.
#[derive(Debug)]
pub(super) struct Greeter {
    own: Own,
    file: String,
    settings: Vec<Setting>,
    declared: Declared,
    heads: BTreeMap<Ipv4Addr, Head>,
    /// Ports that stay down until a head fits.
    links: Vec<Port>,
    admitted: bool,
    number: u32,
    outgoing: Vec<Vec<u8>>,
    told_conflict: bool,
}

impl Greeter {
    pub(super) fn new(
        own: Own,
        file: String,
        flows: &Flows,
        declared: Declared,
        links: Vec<Port>,
    ) -> Greeter {
        let setting = |name, index, value, line| Setting {
            name,
            index,
            value: Some(value),
            line,
        };
        let program = Some(PROGRAM);
        let version = replication::VERSION.into();
        let key = replication::KEY_LENGTH as u32;
        let mut settings = vec![
            setting(SettingName::Version, 0, version, None),
            setting(SettingName::KeyLength, 0, key, None),
            setting(
                SettingName::SwitchAddress,
                0,
                own.address.into(),
                declared.address_line,
            ),
            setting(SettingName::Incarnation, 0, own.incarnation, None),
        ];
        let shards = flows.shards.map(|shards| (shards, program));
        if let Some((shards, line)) = declared.shards.or(shards) {
            settings.push(setting(SettingName::Shards, 0, shards.into(), line));
        }
        for class in &flows.classes {
            let (name, length) = (SettingName::StateLength, flows.state_length.into());
            settings.push(setting(name, (*class).into(), length, program));
        }
        for (class, first, line) in &declared.first_leases {
            settings.push(setting(
                SettingName::FirstLease,
                (*class).into(),
                *first,
                *line,
            ));
        }
        Greeter {
            own,
            file,
            settings,
            declared,
            heads: BTreeMap::new(),
            links,
            admitted: false,
            number: 0,
            outgoing: Vec::new(),
            told_conflict: false,
        }
    }

    /// The chain of `shard` begins at `head`.
    pub(super) fn set_head(&mut self, shard: u16, head: HeadFile) {
        for known in self.heads.values_mut() {
            known.shards.remove(&shard);
        }
        self.heads
            .retain(|address, known| !known.shards.is_empty() || *address == head.address);
        if self.heads.len() >= MOST_HEADS && !self.heads.contains_key(&head.address) {
            return;
        }
        let known = self.heads.entry(head.address).or_insert(Head {
            file: head,
            shards: BTreeSet::new(),
            next: 0,
            asked: None,
            heard: None,
            silent: false,
            differences: None,
            seen: None,
            refuses: false,
        });
        known.file = head;
        known.shards.insert(shard);
    }

    /// Port towards the store.
    pub(super) fn port(&self) -> Port {
        self.own.port
    }

    /// True once a head has fitted.
    pub(super) fn is_admitted(&self) -> bool {
        self.admitted
    }

    /// True of a port that must be down.
    pub(super) fn holds_down(&self, port: Port) -> bool {
        !self.admitted && self.links.contains(&port)
    }

    /// True if silence of the store has no consequence for the switch, and it was silent.
    pub(super) fn goes_without(&self) -> bool {
        let answered = self.heads.values().any(|head| head.differences.is_some());
        self.links.is_empty() && !answered && self.heads.values().any(|head| head.silent)
    }

    /// The settings that do not fit, in words.
    pub(super) fn differences(&self) -> Vec<String> {
        let of_head = |head: &Head| {
            let address = head.file.address;
            let told = head.differences.clone().unwrap_or_default();
            told.into_iter()
                .map(move |text| format!("store {address}: {text}"))
        };
        self.heads.values().flat_map(of_head).collect()
    }

    pub(super) fn report(&self, now: u64) -> GreetingReport {
        let heads = self.heads.values().map(|head| HeadReport {
            address: head.file.address,
            port: self.own.port,
            fits: head.differences.as_ref().is_some_and(Vec::is_empty) && !head.silent,
            differences: head.differences.clone().unwrap_or_default(),
            silent_ms: head.silent.then(|| {
                let since = head.heard.or(head.asked).unwrap_or(now);
                now.saturating_sub(since) / 1000
            }),
        });
        GreetingReport {
            admitted: self.admitted,
            heads: heads.collect(),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub(super) fn due(&self) -> Option<u64> {
        self.heads.values().map(|head| head.next).min()
    }

    /// Greets what is due at `now`. `hint` says what the port's seals tell of a silence.
    pub(super) fn handle_timeout(&mut self, now: u64, hint: &dyn Fn() -> Option<&'static str>) {
        let due: Vec<Ipv4Addr> = self
            .heads
            .iter()
            .filter(|(_, head)| head.next <= now)
            .map(|(address, _)| *address)
            .collect();
        for address in due {
            self.number = self.number.wrapping_add(1);
            let number = self.number;
            let Some(head) = self.heads.get_mut(&address) else {
                continue;
            };
            let since = *head.asked.get_or_insert(now);
            let since = head.heard.unwrap_or(since);
            let fits = head.differences.as_ref().is_some_and(Vec::is_empty) && !head.silent;
            head.next = now + if fits { SELDOM } else { SOON };
            let silence = if head.heard.is_some() {
                3 * SELDOM
            } else {
                SILENCE
            };
            if !head.silent && now.saturating_sub(since) >= silence {
                head.silent = true;
                let port = self.own.port;
                let cause = cause(head, &self.file, hint());
                tracing::error!(%address, port, "the store does not answer greetings: {cause}");
            }
            let (mac, shards) = (head.file.mac, head.shards.clone());
            if head.silent || head.asked == Some(now) {
                let question = Arp {
                    asks: true,
                    sender_mac: self.own.mac,
                    sender: self.own.address,
                    target: address,
                };
                self.outgoing.push(question.frame([0xff; 6]));
            }
            let frame = self.greeting(number, address, mac, &shards);
            self.outgoing.extend(frame);
        }
    }

    /// The next frame to send by the port towards the store.
    pub(super) fn poll_frame(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop()
    }

    fn greeting(
        &self,
        number: u32,
        to: Ipv4Addr,
        mac: MacAddress,
        shards: &BTreeSet<u16>,
    ) -> Option<Vec<u8>> {
        let mut settings = self.settings.clone();
        if let Some((epoch, line)) = self.declared.chain_epoch {
            let head_line = self.heads.get(&to).and_then(|head| head.file.line);
            for shard in shards.iter().take(MOST_SHARDS) {
                for (name, value, line) in [
                    (SettingName::Head, u32::from(to), head_line),
                    (SettingName::ChainEpoch, epoch, line),
                ] {
                    settings.push(Setting {
                        name,
                        index: *shard,
                        value: Some(value),
                        line,
                    });
                }
            }
        }
        let greeting = Greeting {
            answers: false,
            number,
            switch_id: self.own.switch,
            incarnation: self.own.incarnation,
            address: self.own.address,
            settings,
            file: self.file.clone(),
        };
        let message = greeting.to_vec();
        let datagram = udp::Repr {
            source_port: replication::PORT,
            destination_port: replication::PORT,
            payload: &message,
        };
        let datagram = datagram.to_vec(self.own.address, to).ok()?;
        let packet = ipv4::Repr::new(self.own.address, to, ipv4::PROTOCOL_UDP, &datagram);
        let packet = packet.to_vec().ok()?;
        let frame = ethernet::Repr {
            destination: ethernet::Address(mac),
            source: ethernet::Address(self.own.mac),
            ethertype: ethernet::TYPE_IPV4,
            payload: &packet,
        };
        frame.to_vec().ok()
    }

    /// Tells which frames it has to see.
    pub(super) fn filter(&self) -> GreetingFilter {
        GreetingFilter {
            port: self.own.port,
            address: self.own.address,
        }
    }

    /// Takes a frame that came to the port towards the store; `true` if the program must not see
    /// it.
    pub(super) fn handle(&mut self, now: u64, frame: &[u8]) -> bool {
        match self.filter().kind_of(frame) {
            FrameKind::Other | FrameKind::Beat => return false,
            FrameKind::Arp => {
                if let Some(arp) = Arp::of(frame) {
                    self.hear_arp(&arp);
                }
                return false;
            }
            FrameKind::Icmp => {
                self.hear_icmp(frame);
                return false;
            }
            FrameKind::Greeting => {}
        }
        if let Some((from, message)) = datagram(frame)
            && let Ok(answer) = Greeting::parse(message)
        {
            self.hear(now, from, &answer);
        }
        true
    }

    fn hear(&mut self, now: u64, from: Ipv4Addr, answer: &Greeting) {
        let ours = answer.answers
            && answer.switch_id == self.own.switch
            && answer.incarnation == self.own.incarnation
            // Of one of the last greetings.
            && self.number.wrapping_sub(answer.number) < 64;
        let port = self.own.port;
        let declared = &self.declared;
        let Some(head) = self.heads.get_mut(&from).filter(|_| ours) else {
            return;
        };
        if head.silent {
            let since = head.heard.or(head.asked).unwrap_or(now);
            let silent_ms = now.saturating_sub(since) / 1000;
            tracing::info!(address = %from, port, silent_ms, "the store answers greetings again");
        }
        (head.heard, head.silent, head.refuses) = (Some(now), false, false);
        let line = head.file.line;
        let here = |there: &Setting| {
            let mut own = self.settings.iter();
            let found = own.find(|own| own.name == there.name && own.index == there.index);
            let of_chain = |value, line| Setting {
                name: there.name,
                index: there.index,
                value: Some(value),
                line,
            };
            match (found, there.name, declared.chain_epoch) {
                (Some(found), ..) => Some(*found),
                (None, SettingName::Head, _) => Some(of_chain(u32::from(from), line)),
                (None, SettingName::ChainEpoch, Some((epoch, line))) => Some(of_chain(epoch, line)),
                _ => None,
            }
        };
        let differences: Vec<String> = answer
            .settings
            .iter()
            .filter_map(|there| {
                let difference = Difference {
                    here: here(there)?,
                    there: *there,
                    file_here: self.file.clone(),
                    file_there: answer.file.clone(),
                };
                Some(difference.to_string())
            })
            .collect();
        let fits = differences.is_empty();
        if head.differences.as_ref() != Some(&differences) {
            for text in &differences {
                tracing::error!(store = %from, port, "the store does not fit: {text}");
            }
            if fits {
                tracing::info!(store = %from, port, "the settings of the store fit");
            }
            head.next = now + if fits { SELDOM } else { SOON };
            head.differences = Some(differences);
        }
        self.admitted |= fits && self.differences().is_empty();
    }

    fn hear_arp(&mut self, arp: &Arp) {
        if arp.sender == self.own.address && arp.sender_mac != self.own.mac {
            if !std::mem::replace(&mut self.told_conflict, true) {
                let mac = shown(arp.sender_mac);
                let line = at(&self.file, self.declared.address_line);
                let (address, port) = (self.own.address, self.own.port);
                tracing::error!(
                    %address, port,
                    "the switch's address ({line}) is another machine's too, which has the MAC address {mac}"
                );
            }
            return;
        }
        if let Some(head) = self.heads.get_mut(&arp.sender)
            && !arp.asks
            && head.seen != Some(arp.sender_mac)
        {
            head.seen = Some(arp.sender_mac);
            if arp.sender_mac != head.file.mac && head.differences.is_none() {
                let (found, file) = (shown(arp.sender_mac), shown(head.file.mac));
                let line = at(&self.file, head.file.line);
                let (address, port) = (arp.sender, self.own.port);
                tracing::error!(
                    %address, port,
                    "the store's MAC address is {found}, and not {file} ({line})"
                );
            }
        }
    }

    /// Notes that a head says nobody listens at the port of requests (RFC 792, type 3, code 3).
    fn hear_icmp(&mut self, frame: &[u8]) {
        let from = Ipv4Addr::new(
            frame[IP + 12],
            frame[IP + 13],
            frame[IP + 14],
            frame[IP + 15],
        );
        let refused = frame[UDP..UDP + 2] == [3, 3]
            && frame.len() >= QUOTED + 24
            && frame[QUOTED + 9] == ipv4::PROTOCOL_UDP
            && frame[QUOTED + 22..QUOTED + 24] == replication::PORT.to_be_bytes();
        if let Some(head) = self.heads.get_mut(&from).filter(|_| refused) {
            head.refuses = true;
        }
    }
}

#[cfg(test)]
mod tests;
