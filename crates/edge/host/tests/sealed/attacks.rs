//! Altered, cut, invented and repeated messages against live stores.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use stateplane_seal::ANSWER_LENGTH;
use stateplane_wire::replication::MessageType;

use crate::network::{Network, Switch};

/// Attacks, unless the environment variable `STATEPLANE_ATTACKS` asks for more.
const ATTACKS: u64 = 20_000;

/// Writes of the switch that the attacks are made of.
const WRITES: u32 = 64;

/// Attacks between two questions of the switch that lives at the same address: its reply
/// tells that all before it were looked at.
const ROUND: u64 = 100;

/// Numbers that look random and are the same each time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}

/// An attack made of a message that was sealed and taken once.
fn attack(numbers: &mut Numbers, recorded: &[u8]) -> Vec<u8> {
    let mut bytes = recorded.to_vec();
    match numbers.below(6) {
        0 => {}
        1 => bytes.truncate(numbers.below(bytes.len())),
        2 => {
            let at = numbers.below(bytes.len());
            bytes[at] ^= 1 << numbers.below(8);
        }
        3 => {
            for _ in 0..1 + numbers.below(8) {
                let at = numbers.below(bytes.len());
                bytes[at] = numbers.below(256) as u8;
            }
            // Not by chance the very same.
            bytes[0] = !recorded[0];
        }
        4 => bytes.extend((0..1 + numbers.below(400)).map(|at| at as u8)),
        _ => {
            bytes = (0..numbers.below(600))
                .map(|_| numbers.below(256) as u8)
                .collect();
        }
    }
    bytes
}

/// Takes what came to the attacker; nothing may be longer than an answer, which is only
/// given to questions of at least that length.
fn drain(socket: &UdpSocket, answers: &mut u64) {
    let mut buffer = [0; 4096];
    while let Ok((length, _)) = socket.recv_from(&mut buffer) {
        assert!(length <= ANSWER_LENGTH, "an answer of {length} bytes");
        *answers += 1;
    }
}

#[test]
fn attacks_change_nothing_and_gain_nothing() {
    let count: u64 = std::env::var("STATEPLANE_ATTACKS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ATTACKS);
    let mut network = Network::start(87);
    let mut switch = Switch::new(&network, 1);
    switch.lease(1);
    let mut recorded: Vec<Vec<u8>> = Vec::new();
    for sequence in 2..WRITES + 2 {
        assert_eq!(switch.write(1, sequence), sequence);
        recorded.push(switch.sent.clone());
    }
    let before = network.digests();
    assert!(before.iter().all(|digest| *digest == before[0]));
    // From the switch's address, from another one's, from nobody's and from a store's; to
    // the head's request port and to every chain port.
    let attackers = [101, 102, 150, 2].map(|host| network.socket(host));
    let short = network.socket(101);
    for socket in attackers.iter().chain([&short]) {
        socket.set_nonblocking(true).unwrap();
    }
    let chain = [1, 2, 3].map(|host| {
        SocketAddrV4::new(Ipv4Addr::new(127, 0, network.net, host), network.chain_port)
    });
    let mut numbers = Numbers(1);
    let (mut answers, mut short_answers) = (0, 0);
    for number in 0..count {
        if number % ROUND == 0 {
            switch.ask(&switch.message(MessageType::ProbeRequest, 1, 0));
            for socket in &attackers {
                drain(socket, &mut answers);
            }
            drain(&short, &mut short_answers);
        }
        let of = numbers.below(recorded.len());
        let made = attack(&mut numbers, &recorded[of]);
        let (socket, target) = match numbers.below(8) {
            0 => (&attackers[1], network.request_address()),
            1 => (&attackers[2], network.request_address()),
            2 => (&attackers[3], chain[numbers.below(3)].into()),
            3 => (&attackers[2], chain[numbers.below(3)].into()),
            _ if made.len() < ANSWER_LENGTH => (&short, network.request_address()),
            _ => (&attackers[0], network.request_address()),
        };
        let _ = socket.send_to(&made, target);
    }
    switch.ask(&switch.message(MessageType::ProbeRequest, 1, 0));
    assert_eq!(network.digests(), before);
    assert_eq!(short_answers, 0, "short questions get none");
    let reports = network.stop();
    let seals = reports[0].seals.unwrap();
    // Only what the switch sealed itself went to the core, each once, but for the first.
    let sent = u64::from(switch.asked);
    let taken = reports[0].replica.requests;
    assert!(taken < sent && taken + 3 >= sent, "{taken} of {sent}");
    assert_eq!(reports[0].replica.granted, 1);
    assert_eq!(reports[0].replica.written, u64::from(WRITES));
    for report in &reports {
        let replica = report.replica;
        assert_eq!(replica.malformed + replica.chain_malformed, 0);
        assert_eq!(replica.chain_inconsistent, 0);
        assert_eq!(report.host.over_share, 0);
    }
    assert!(
        seals.messages.replayed + seals.messages.too_old >= count / 20,
        "{seals:?}"
    );
    assert!(seals.messages.forged >= count / 20, "{seals:?}");
    assert!(seals.messages.truncated >= count / 100, "{seals:?}");
    eprintln!("{count} attacks, {answers} answers, {seals:?}");
}
