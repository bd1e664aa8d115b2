//! The programs of ApproSync's Table II, and traffic that changes their registers.

use super::super::packets::Packet;
use super::super::viewed::{Macros, Viewed, plain, refused, shipped};
use crate::error::EvalError;
use num_bigint::BigUint;
use stateplane_native::Compiled;
use stateplane_runtime::{StateError, TargetState};
use stateplane_sketch::coefficient;
use stateplane_wire::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::{ethernet, ipv4, tcp, udp};
use std::net::Ipv4Addr;

/// The text of a program.
#[derive(Clone, Copy)]
enum Text {
    /// A program of `apps`, by its folder.
    Shipped(&'static str),
    /// A program of `bench/p4`, with nothing of a control plane.
    Plain(&'static str),
}

/// A program of Table II.
#[derive(Clone, Copy)]
pub(in super::super) struct Application {
    /// Its name, and its number of counters, in Table II.
    pub(in super::super) name: &'static str,
    pub(in super::super) counters: u64,
    text: Text,
    macros: Macros<'static>,
    /// Registers in view; those that the program annotates, or all, if none is named.
    registers: &'static [&'static str],
    /// Table, action and its data that make packets write.
    default: Option<(&'static str, &'static str, &'static [u64])>,
    /// The frame of a number.
    pub(in super::super) frame: fn(u32) -> Option<Vec<u8>>,
}

const NONE: Application = Application {
    name: "",
    counters: 0,
    text: Text::Plain(""),
    macros: &[],
    registers: &[],
    default: None,
    frame: datagrams,
};

const SHORT_NAMES: Macros<'static> = &[("DNS_NAME_BYTES", 32)];

/// All of them, in the order of the table. Of those whose flows a store keeps (FW, HH, SS, SF), the
/// first two are the plain programs of this project's measurements, SS is the sketch of partners, and
/// SF has in view the sources that it knows.
pub(in super::super) const APPLICATIONS: [Application; 16] = [
    Application {
        name: "packet counter",
        counters: 1 << 16,
        text: Text::Plain(include_str!("../../../../../../bench/p4/packet_counter.p4")),
        ..NONE
    },
    Application {
        name: "flowlet switching",
        counters: 1 << 14,
        text: Text::Shipped("flowlet-switching"),
        default: Some(("FlowletIngress.groups", "FlowletIngress.spread", &[1, 4])),
        ..NONE
    },
    Application {
        name: "malicious DNS domain detection",
        counters: 3 << 16,
        text: Text::Shipped("dns-malicious-domain"),
        macros: SHORT_NAMES,
        frame: domains,
        ..NONE
    },
    Application {
        name: "Snort flowbits",
        counters: 3 << 16,
        text: Text::Shipped("flowbits"),
        default: Some((
            "FlowbitsIngress.rules",
            "FlowbitsIngress.change",
            &[1, 0, 2],
        )),
        ..NONE
    },
    Application {
        name: "affine LB",
        counters: 1 << 17,
        text: Text::Shipped("affine-balancer"),
        default: Some(("BalancerIngress.services", "BalancerIngress.serve", &[1, 8])),
        ..NONE
    },
    Application {
        name: "DNS TTL change tracking",
        counters: 3 << 16,
        text: Text::Shipped("dns-ttl-change"),
        macros: SHORT_NAMES,
        frame: domains,
        ..NONE
    },
    Application {
        name: "DNS tunnel detection",
        counters: 3 << 16,
        text: Text::Shipped("dns-tunnel"),
        macros: SHORT_NAMES,
        frame: domains,
        ..NONE
    },
    Application {
        name: "stateful firewall",
        counters: 1 << 17,
        text: Text::Plain(include_str!("../../../../../../bench/p4/firewall.p4")),
        frame: connections,
        ..NONE
    },
    Application {
        name: "FTP monitoring",
        counters: 1 << 16,
        text: Text::Shipped("ftp-monitor"),
        default: Some((
            "FtpIngress.servers",
            "FtpIngress.server_is_destination",
            &[],
        )),
        frame: transfers,
        ..NONE
    },
    Application {
        name: "heavy hitter detection",
        counters: 1 << 17,
        text: Text::Plain(include_str!("../../../../../../bench/p4/sketch.p4")),
        ..NONE
    },
    Application {
        name: "super-spreader detection",
        counters: 1 << 17,
        text: Text::Shipped("count-min"),
        macros: &[("COUNT_MIN_PARTNER_BITS", 15)],
        registers: &["destinations"],
        ..NONE
    },
    Application {
        name: "sampling based on flow size",
        counters: 5 << 16,
        text: Text::Shipped("flow-sampling"),
        ..NONE
    },
    Application {
        name: "SYN flood detection",
        counters: 1 << 17,
        text: Text::Shipped("syn-defence"),
        registers: &["defence_known"],
        frame: connections,
        ..NONE
    },
    Application {
        name: "DNS amplification mitigation",
        counters: 1 << 16,
        text: Text::Shipped("dns-amplification"),
        macros: SHORT_NAMES,
        frame: domains,
        ..NONE
    },
    Application {
        name: "UDP flood mitigation",
        counters: 1 << 17,
        text: Text::Shipped("udp-flood"),
        ..NONE
    },
    Application {
        name: "elephant flows detection",
        counters: 5 << 16,
        text: Text::Shipped("elephant-flows"),
        ..NONE
    },
];

impl Application {
    /// The program with its registers in view.
    ///
    /// # Errors
    /// `EV003` with what the compiler says.
    pub(in super::super) fn viewed(&self) -> Result<Viewed, EvalError> {
        Viewed::new(self.name, self.text()?, self.macros, self.registers)
    }

    /// The program as it is.
    ///
    /// # Errors
    /// `EV003` with what the compiler says.
    pub(in super::super) fn plain(&self) -> Result<Compiled, EvalError> {
        plain(self.name, self.text()?, self.macros)
    }

    fn text(&self) -> Result<&'static str, EvalError> {
        match self.text {
            Text::Plain(text) => Ok(text),
            Text::Shipped(folder) => {
                let file = folder.replace('-', "_");
                shipped(&format!("apps/{folder}/{file}.p4"))
            }
        }
    }

    /// Has packets write.
    ///
    /// # Errors
    /// `EV003` if the program has no such table.
    pub(in super::super) fn prepare(&self, state: &mut TargetState) -> Result<(), EvalError> {
        let Some((table, action, data)) = self.default else {
            return Ok(());
        };
        let data: Vec<BigUint> = data.iter().map(|it| BigUint::from(*it)).collect();
        let set = |table: &mut stateplane_runtime::Table| table.set_default(action, &data);
        let done: Result<(), StateError> = state.table_mut(table).and_then(set);
        done.map_err(|error| refused(self.name, error))
    }
}

/// Flows, clients and names among which numbers are spread.
const FLOWS: u32 = 50_000;
const NAMES: u64 = 4_096;

/// A server and a resolver.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 21);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 53);
const FTP_PORT: u16 = 21;
const DNS_PORT: u16 = 53;

fn frame(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, segment: &[u8]) -> Option<Vec<u8>> {
    let datagram = ipv4::Repr::new(from, to, protocol, segment);
    let mut frame = vec![2; 12];
    frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(datagram.to_vec().ok()?);
    Some(frame)
}

/// Pseudo-random bits of a number.
fn bits(number: u32) -> u64 {
    coefficient(0x7461_626c, number.into())
}

/// A host outside.
fn client(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a40_0000 | bits(number % FLOWS) as u32 & 0x3f_ffff)
}

/// Datagrams of flows.
fn datagrams(number: u32) -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    Packet::numbered(bits(number) as u32 % FLOWS).frame(&mut frame);
    Some(frame)
}

fn segment(from: Ipv4Addr, to_port: u16, control: u8, payload: &[u8]) -> Option<Vec<u8>> {
    let segment = tcp::Repr {
        source_port: 4_000,
        destination_port: to_port,
        sequence: 1,
        acknowledgement: 0,
        window: 1_000,
        urgent: 0,
        control,
        options: &[],
        payload,
    };
    let segment = segment.to_vec(from, SERVER).ok()?;
    frame(from, SERVER, PROTOCOL_TCP, &segment)
}

/// First segments of connections to a server.
fn connections(number: u32) -> Option<Vec<u8>> {
    segment(client(number), 5_000, tcp::control::SYN, &[])
}

/// By turns a client that announces where it listens, and one that opens a connection which nobody
/// announced.
fn transfers(number: u32) -> Option<Vec<u8>> {
    if number.is_multiple_of(2) {
        return connections(number);
    }
    let from = client(number);
    let [a, b, c, d] = from.octets();
    let text = format!("PORT {a},{b},{c},{d},40,{}\r\n", number as u8);
    segment(from, FTP_PORT, tcp::control::ACK, text.as_bytes())
}

/// By turns a query for a name, and a response to it with an address; each third response has no query.
fn domains(number: u32) -> Option<Vec<u8>> {
    let asked = number & !1;
    let from = client(asked);
    let is_response = number != asked;
    let id = if asked.is_multiple_of(3) && is_response {
        asked as u16 ^ 1
    } else {
        asked as u16
    };
    let mut message = id.to_be_bytes().to_vec();
    message.extend(if is_response { [0x81, 0x80] } else { [1, 0] });
    message.extend([0, 1, 0, u8::from(is_response), 0, 0, 0, 0]);
    let name = format!("{:04x}", bits(asked) % NAMES);
    message.push(name.len() as u8);
    message.extend(name.as_bytes());
    // The end of the name, type A and class IN.
    message.extend([0, 0, 1, 0, 1]);
    if is_response {
        // The name of the question, type A, class IN, time to live, four bytes of an address.
        message.extend([0xc0, 0x0c, 0, 1, 0, 1]);
        message.extend(number.to_be_bytes());
        message.extend([0, 4]);
        message.extend((bits(number) as u32).to_be_bytes());
    }
    let (source, destination) = if is_response {
        (RESOLVER, from)
    } else {
        (from, RESOLVER)
    };
    let port = |of: Ipv4Addr| if of == RESOLVER { DNS_PORT } else { 4_000 };
    let datagram = udp::Repr {
        source_port: port(source),
        destination_port: port(destination),
        payload: &message,
    };
    let segment = datagram.to_vec(source, destination).ok()?;
    frame(source, destination, PROTOCOL_UDP, &segment)
}
