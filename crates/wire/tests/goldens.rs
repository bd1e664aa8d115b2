//! The bytes of each kind of header and message, as hexadecimal text in `tests/goldens`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p stateplane-wire --test goldens` writes the files anew; a
//! difference is another format on the wire.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use stateplane_wire::chain::{
    self, Creation, Decision, Entry, HolderPlace, Item, ItemHolder, LeaseKind,
};
use stateplane_wire::control::{ChainConfig, ChainStatus, Heartbeat, Member, Message, Row};
use stateplane_wire::coordination_control as clients;
use stateplane_wire::greeting::{Greeting, Setting, SettingName};
use stateplane_wire::multicast_control as hosts;
use stateplane_wire::replication::{self, Key, MessageType};
use stateplane_wire::{ethernet, ipv4, multicast, observe, sync, tcp, term, udp};

const A: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);
const B: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
const KEY: Key = Key(*b"\x07key of 16 bytes");

/// 16 bytes a line, as two digits each.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let digits: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", digits.join(" ")).expect("a string takes text");
    }
    text
}

/// Compares each named message with the file of its name, and the names with the files.
fn compare(group: &str, messages: Vec<(String, Vec<u8>)>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let mut names = BTreeSet::new();
    for (name, bytes) in messages {
        let file = format!("{group}-{name}.hex");
        let path = folder.join(&file);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, hex(&bytes)).expect("the golden is written");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(hex(&bytes), golden, "{file}");
        assert!(names.insert(file), "two messages named {name}");
    }
    let files = std::fs::read_dir(&folder).expect("the folder of goldens");
    let files = files.map(|file| file.expect("a file").file_name());
    let files = files.map(|name| name.into_string().expect("a name of letters"));
    let prefix = format!("{group}-");
    let found: BTreeSet<_> = files.filter(|name| name.starts_with(&prefix)).collect();
    assert_eq!(names, found);
}

fn named<const N: usize>(messages: [(&str, Vec<u8>); N]) -> Vec<(String, Vec<u8>)> {
    let named = messages.into_iter();
    named
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect()
}

#[test]
fn packets_of_hosts() {
    let frame = ethernet::Repr {
        destination: ethernet::Address([2, 0, 0, 0, 0, 1]),
        source: ethernet::Address([2, 0, 0, 0, 0, 2]),
        ethertype: ethernet::TYPE_ARP,
        payload: b"arp",
    };
    let whole = ipv4::Repr::new(A, B, ipv4::PROTOCOL_ICMP, b"whole");
    let fragment = ipv4::Repr {
        traffic_class: 0xb9,
        identification: 0x1234,
        dont_fragment: false,
        more_fragments: true,
        fragment_offset: 0x1abc,
        ttl: 3,
        protocol: ipv4::PROTOCOL_UDP,
        options: &[7, 3, 4, 0, 1, 1, 1, 0],
        ..whole
    };
    let datagram = udp::Repr {
        source_port: 40_000,
        destination_port: 53,
        payload: b"odd",
    };
    let segment = tcp::Repr {
        source_port: 40_001,
        destination_port: 443,
        sequence: 0x0102_0304,
        acknowledgement: 0x0506_0708,
        control: tcp::control::SYN | tcp::control::ACK | tcp::control::CWR,
        window: 0x090a,
        urgent: 0x0b0c,
        options: &[2, 4, 5, 0xb4],
        payload: b"segment",
    };
    let messages = [
        ("ethernet", frame.to_vec().unwrap()),
        ("ipv4", whole.to_vec().unwrap()),
        ("ipv4_fragment", fragment.to_vec().unwrap()),
        ("udp", datagram.to_vec(A, B).unwrap()),
        ("tcp", segment.to_vec(A, B).unwrap()),
    ];
    compare("packet", named(messages));
}

#[test]
fn messages_between_switch_and_store() {
    let message = |kind: MessageType| {
        let message = replication::Repr {
            shared: kind == MessageType::LeaseRequest,
            chain_epoch: 0x0102_0304,
            shard: 0x0506,
            code: if kind == MessageType::Refusal { 10 } else { 0 },
            switch_id: 0x1112_1314,
            incarnation: 0x1516_1718,
            claim: 0x2122_2324,
            request: 0x2526_2728,
            send_time: 0x3132_3334_3536,
            ingress_port: 0x4142,
            lease_epoch: 0x5152_5354,
            sequence: 0x5556_5758,
            age: 0x6162_6364_6566_6768,
            attempt: 0x7172,
            state: if kind == MessageType::WriteRequest {
                b"state"
            } else {
                &[]
            },
            packet: (kind as u8 & 0xf < 3).then_some(b"packet"),
            ..replication::Repr::new(kind, KEY)
        };
        (
            format!("{kind:?}").to_lowercase(),
            message.to_vec().unwrap(),
        )
    };
    compare("replication", MessageType::ALL.map(message).to_vec());
}

#[test]
fn messages_of_terms() {
    let row = |shard, flags| term::Row {
        shard,
        epoch: 0x0102_0304,
        flags,
    };
    let changes = term::Changes {
        stream: 0x1112_1314,
        after: 0x1516_1718,
        version: 0x191a_1b1c,
        rows: vec![row(0x2122, 1), row(0x2324, 3), row(0x2526, 0)],
    };
    let (number, send_time) = (0x3132, 0x3334_3536_3738);
    let heartbeat = term::Heartbeat {
        switch_id: 0x4142_4344,
        incarnation: 0x4546_4748,
        number,
        send_time,
        stream: 0x1112_1314,
        version: 0x1516_1718,
    };
    let reply = term::Reply {
        switch_id: 0x4142_4344,
        incarnation: 0x4546_4748,
        number,
        send_time,
        promise: 100_000,
        withheld: vec![0x5152],
        changes: changes.clone(),
    };
    let question = term::Question {
        server: 0x4142_4344,
        incarnation: 0x4546_4748,
        number: 0x3132_3334,
        backing: 400_000,
        stream: 0x1112_1314,
        version: 0x1516_1718,
    };
    let answer = term::Answer {
        server: 0x4142_4344,
        incarnation: 0x4546_4748,
        number: 0x3132_3334,
        whole: true,
        changes,
    };
    let messages = [
        ("heartbeat", heartbeat.to_vec().unwrap()),
        ("reply", reply.to_vec().unwrap()),
        ("question", question.to_vec()),
        ("answer", answer.to_vec()),
    ];
    compare("term", named(messages));
}

#[test]
fn messages_of_observers() {
    let question = observe::Observe {
        parts: 16,
        incarnation: 0x1112_1314,
        switch_id: 0x2122_2324,
        number: 0x3132_3334,
        chain: 0x4142,
        scan_shard: 0x4344,
        scan: 0x4546_4748,
        stream: 0x5152_5354_5556_5758,
        after: 0x6162_6364_6566_6768,
    };
    let record = |lease, state| observe::Record {
        shard: 0x4142,
        key: KEY,
        epoch: 0x7172_7374,
        sequence: 0x8182_8384,
        lease,
        state,
    };
    let mut body = Vec::new();
    for record in [
        record(Some(observe::Holding::Nobody), b"state"),
        record(Some(observe::Holding::Owner), b""),
        record(Some(observe::Holding::Readers), b"s"),
        record(None, b""),
    ] {
        record.append(&mut body).unwrap();
    }
    let elsewhere = observe::Answer::elsewhere(&question, 0x4748, 0x9192_9394);
    let answer = observe::Answer {
        flags: observe::answer_flag::ANEW | observe::answer_flag::LATEST,
        part: 1,
        parts: 3,
        scan_shard: 0x4344,
        scan: 0x4546_4748,
        stream: 0x5152_5354_5556_5758,
        upto: 0x6162_6364_6566_6768,
        applied: 0x6162_6364_6566_6769,
        body: &body,
        ..elsewhere
    };
    let messages = [
        ("question", question.to_vec()),
        ("answer", answer.to_vec()),
        ("elsewhere", elsewhere.to_vec()),
    ];
    compare("observe", named(messages));
}

#[test]
fn messages_between_replicas() {
    use chain::Kind;
    let kinds = [
        (Kind::Update, &b"\0\x01x"[..]),
        (Kind::Ack, &[]),
        (Kind::Snapshot, b"\x01\x02\x03\x04\x05\x06\x07"),
        (Kind::SnapshotAck, &[]),
        (Kind::Compare, &[]),
        (Kind::Compared, &[]),
    ];
    let messages = kinds.map(|(kind, body)| {
        let message = chain::Repr {
            kind,
            replica: 2,
            chain: 0x1112,
            chain_epoch: 0x0102_0304,
            incarnation: 0x0506_0708,
            number: 0x090a_0b0c_0d0e_0f10,
            base: 0x1314_1516_1718_191a,
            body,
        };
        (
            format!("{kind:?}").to_lowercase(),
            message.to_vec().unwrap(),
        )
    });
    compare("chain", messages.to_vec());
}

#[test]
fn entries_of_updates() {
    let grant = |holder: Option<(u16, bool)>, creation| Decision::Grant {
        lease_epoch: 0x0102_0304,
        holder: holder.map(|(at, drops)| HolderPlace { at, drops }),
        creation,
    };
    let zero = Creation {
        kind: 0,
        payload: [0; 6],
    };
    let mapping = Creation {
        kind: 4,
        payload: [0x11, 0x12, 203, 0, 113, 9],
    };
    let server = Creation {
        kind: 16,
        payload: [0x13, 0x14, 10, 1, 2, 3],
    };
    let decisions = [
        ("grant", grant(None, None)),
        ("grant_shared", grant(Some((0x1516, false)), None)),
        ("grant_dropping", grant(Some((0x1516, true)), None)),
        ("grant_zero", grant(None, Some(zero))),
        ("grant_mapping", grant(Some((0x1718, false)), Some(mapping))),
        ("grant_server", grant(None, Some(server))),
        ("write", Decision::Write { install: false }),
        ("write_install", Decision::Write { install: true }),
        ("renew", Decision::Renew),
        ("probe", Decision::Probe),
        (
            "refuse",
            Decision::Refuse {
                code: 9,
                lease_epoch: 0x3132_3334,
            },
        ),
        (
            "expire",
            Decision::Expire {
                shard: 0x3536,
                key: KEY,
            },
        ),
        ("release", Decision::Release),
    ];
    let messages = decisions.map(|(name, decision)| {
        let expiry = matches!(decision, Decision::Expire { .. });
        let entry = Entry {
            decision,
            switch: SocketAddrV4::new(Ipv4Addr::new(10, 9, 8, 7), 4793),
            request: if expiry { &[] } else { b"request" },
        };
        let mut bytes = vec![0; entry.buffer_len()];
        entry.emit(&mut bytes).unwrap();
        (name, bytes)
    });
    compare("entry", named(messages));
}

#[test]
fn items_of_snapshots() {
    let mut holders = Vec::new();
    for number in [1, 2] {
        let holder = ItemHolder {
            switch: number,
            incarnation: 0x0102_0304,
            claim: 0x0506_0708,
            epoch: 0x090a_0b0c,
            address: SocketAddrV4::new(A, 4793),
        };
        holder.append(&mut holders);
    }
    let record = |lease, holders, mapped_to| Item::Record {
        shard: 0x1112,
        key: KEY,
        sequence: 0x1314_1516,
        epoch: 0x1718_191a,
        lease,
        holders: chain::ItemHolders::new(holders).unwrap(),
        mapped_to,
        state: b"state",
    };
    let items = [
        (
            "shard",
            Item::Shard {
                shard: 0x2122,
                epoch: 0x2324_2526,
            },
        ),
        ("record", record(LeaseKind::None, &[], None)),
        (
            "record_exclusive",
            record(LeaseKind::Exclusive, &holders[..22], None),
        ),
        (
            "record_mapped",
            record(LeaseKind::Shared, &holders, Some(Key([9; 16]))),
        ),
        (
            "pool",
            Item::Pool {
                shard: 0x3132,
                protocol: 17,
                address: B,
                fresh: 0x3334_3536,
                ports: chain::ItemPorts::new(&[4, 1, 4, 3]).unwrap(),
            },
        ),
        (
            "end",
            Item::End {
                digest: 0x4142_4344_4546_4748,
            },
        ),
    ];
    let messages = items.map(|(name, item)| {
        let mut bytes = Vec::new();
        item.emit(&mut bytes).unwrap();
        (name, bytes)
    });
    compare("item", named(messages));
}

#[test]
fn greetings_between_switch_and_store() {
    let setting = |name, value, line| Setting {
        name,
        index: 0x0102,
        value,
        line,
    };
    let settings = vec![
        setting(SettingName::StateLength, Some(0x0304_0506), None),
        setting(SettingName::Incarnation, None, Some(0x0708_090a)),
    ];
    let greeting = Greeting {
        answers: false,
        number: 0x1112_1314,
        switch_id: 0x2122_2324,
        incarnation: 0x3132_3334,
        address: A,
        settings,
        file: "switch.toml".to_owned(),
    };
    let answer = Greeting {
        answers: true,
        address: B,
        ..greeting.clone()
    };
    let messages = [("greeting", greeting.to_vec()), ("answer", answer.to_vec())];
    compare("greeting", named(messages));
}

#[test]
fn messages_of_the_controller() {
    let member = |server| Member {
        server,
        incarnation: 0x0102_0304,
        requests: SocketAddrV4::new(A, 4793),
        links: SocketAddrV4::new(B, 4794),
    };
    let status = |flag: u8| ChainStatus {
        chain: 0x1112,
        epoch: 0x1314_1516,
        joined: flag == 0,
        suspects: flag == 1,
        lost: flag == 2,
        applied: 0x2122_2324_2526_2728,
        base: 0x3132_3334_3536_3738,
    };
    let configure = |joining| Message::Configure {
        controller: 0x4142_4344,
        config: ChainConfig {
            chain: 0x4546,
            epoch: 0x4748_494a,
            members: vec![member(1), member(2)],
            joining,
        },
    };
    let row = |shard| Row {
        shard,
        epoch: 0x5152_5354,
        head: SocketAddrV4::new(A, 4793),
    };
    let messages = [
        (
            "heartbeat",
            Message::Heartbeat(Heartbeat {
                from: member(0x6162_6364),
                number: 0x7172_7374_7576_7778,
                statuses: (0..3).map(status).collect(),
            }),
        ),
        ("configure", configure(None)),
        ("configure_joining", configure(Some(member(3)))),
        (
            "subscribe",
            Message::Subscribe {
                switch: 0x0102_0304,
                controller: 0x0506_0708,
                version: 0x090a_0b0c_0d0e_0f10,
            },
        ),
        (
            "rows",
            Message::Rows {
                controller: 0x0102_0304,
                after: 0x1112_1314_1516_1718,
                version: 0x2122_2324_2526_2728,
                rows: vec![row(1), row(0x0203)],
            },
        ),
    ];
    compare(
        "control",
        named(messages.map(|(name, message)| (name, message.to_vec()))),
    );
}

#[test]
fn messages_between_clients_and_controller() {
    use clients::Message;
    let mut chain = clients::Chain {
        group: 0x1112,
        generation: 0x1314,
        epoch: 0x1516_1718,
        flags: 0,
        members: 2,
        chain_1: A.into(),
        chain_2: B.into(),
        chain_3: Default::default(),
        chain_4: Default::default(),
    };
    let first = chain;
    chain.set_switches([A, B, A, B]);
    chain.members = 3;
    chain.flags = clients::JOINS | clients::DOWN;
    let session = |session| clients::Session {
        session,
        first_lane: 0x2122,
        count: 0x2324,
        lane_incarnation: 0x2526,
        age_ms: 0x2728_292a,
    };
    let messages = [
        (
            "learn",
            Message::Learn(clients::Learn {
                controller: 0x0102_0304,
                version: 0x0506_0708_090a_0b0c,
                group: 0x0d0e,
                room: clients::room_for_chains(1),
            }),
        ),
        (
            "chains",
            Message::Chains {
                controller: 0x0102_0304,
                version: 0x0506_0708_090a_0b0c,
                groups: 0x0d0e,
                slots: 0x0f10,
                next: 0x3132,
                chains: vec![first, chain],
            },
        ),
        (
            "open",
            Message::Open {
                nonce: 0x0102_0304_0506_0708,
                lanes: 0x090a,
            },
        ),
        (
            "opened",
            Message::Opened(clients::Opened {
                nonce: 0x0102_0304_0506_0708,
                session: 0x090a_0b0c,
                first_lane: 0x0d0e,
                count: 0x0f10,
                lane_incarnation: 0x1112,
                groups: 0x1314,
                lanes: 0x1516,
                slots: 0x1718,
                ttl_ms: 0x191a_1b1c,
            }),
        ),
        (
            "close",
            Message::Close(clients::Lanes {
                session: 0x0102_0304,
                first: 0x0506,
                count: 0x0708,
                incarnation: 0x090a,
            }),
        ),
        (
            "ended",
            Message::Ended {
                session: 0x0102_0304,
            },
        ),
        (
            "list",
            Message::List {
                session: 0x0102_0304,
                room: clients::room_for_sessions(0),
            },
        ),
        (
            "sessions",
            Message::Sessions {
                controller: 0x0102_0304,
                sessions: 0x0506,
                free_lanes: 0x0708_090a,
                ttl_ms: 0x0b0c_0d0e,
                next: 0x0f10_1112,
                rows: vec![session(1), session(0x3132_3334)],
            },
        ),
    ];
    compare(
        "coordination_control",
        named(messages.map(|(name, message)| (name, message.to_vec()))),
    );
}

fn a_beat() -> hosts::Beat {
    let mut standing = hosts::Standing {
        group: 3,
        flags: hosts::LEADS,
        promised: 0x0102_0304,
        base: 0x0506_0708,
        end: 0x090a_0b0c,
        commit: 0x0d0e_0f10,
        lacks_members: 0x11,
        lacks_receivers: 0x12,
        lacks_decided: 0x1314_1516,
        lacks_done: 0x1718_191a,
        received: [0; 32],
    };
    standing.set_received_by(0x2000_0001..0x2000_0009);
    let mut beat = hosts::Beat {
        switch: 0x3132_3334,
        incarnation: 0x3536_3738,
        number: 0x393a_3b3c_3d3e_3f40,
        controller: 0x4142_4344,
        version: 0x4546_4748_494a_4b4c,
        held: [0; 32],
        standings: vec![standing],
        room: 3,
    };
    beat.set_holds(0);
    beat.set_holds(255);
    beat
}

fn a_view() -> hosts::Message {
    let member = |number, role| hosts::Member {
        number,
        role,
        switch: 0x0102_0304,
        incarnation: 0x0506_0708,
        address: A,
    };
    let group = hosts::Group {
        group: 31,
        record: 0x1112_1314,
        epoch: 0x1516_1718,
        leader: B,
        list: 0x191a,
        members: vec![
            member(0, hosts::role::MEMBER),
            member(7, hosts::role::LEARNER),
        ],
        receivers: vec![hosts::Receiver {
            number: 5,
            address: B,
        }],
    };
    let session = hosts::Session {
        slot: 0x2122,
        lanes: 8,
        state: hosts::slot::OPEN,
    };
    hosts::Message::View {
        controller: 0x3132_3334,
        after: 0x3536_3738_393a_3b3c,
        version: 0x3d3e_3f40_4142_4344,
        rows: vec![hosts::Row::Group(group), hosts::Row::Session(session)],
    }
}

#[test]
fn messages_between_hosts_and_multicasts_controller() {
    use hosts::Message;
    let (slot, incarnation) = (0x0102, 0x0304);
    let leader = hosts::Leader {
        group: 4,
        epoch: 0x1112_1314,
        leader: A,
    };
    let messages = [
        ("beat", Message::Beat(a_beat())),
        ("view", a_view()),
        (
            "learn",
            Message::Learn(hosts::Learn {
                slot,
                incarnation,
                room: hosts::room_for_leaders(0),
            }),
        ),
        (
            "leaders",
            Message::Leaders {
                controller: 0x0506_0708,
                slot,
                incarnation,
                open: true,
                leaders: vec![leader],
            },
        ),
        (
            "open",
            Message::Open {
                nonce: 0x0102_0304_0506_0708,
                lanes: 9,
            },
        ),
        (
            "opened",
            Message::Opened(hosts::Opened {
                nonce: 0x0102_0304_0506_0708,
                slot,
                incarnation,
                lanes: 9,
                groups: 0x1112_1314,
                longest: 0x1516,
                ttl_ms: 0x1718_191a,
                reason: hosts::reason::OPENED,
            }),
        ),
        ("close", Message::Close { slot, incarnation }),
        ("closed", Message::Closed { slot, incarnation }),
        (
            "join",
            Message::Join {
                nonce: 0x0102_0304_0506_0708,
                group: 9,
                number: hosts::NO_NUMBER,
                position: 0x1112_1314,
                leaves: true,
            },
        ),
        (
            "joined",
            Message::Joined(hosts::Joined {
                nonce: 0x0102_0304_0506_0708,
                group: 9,
                state: hosts::joined::LISTED,
                number: 7,
                list: 0x1112,
                window: 0x1314_1516,
                from_index: 0x1718_191a,
                from_time: 0x1b1c_1d1e_1f20_2122,
            }),
        ),
    ];
    compare(
        "multicast_control",
        named(messages.map(|(name, message)| (name, message.to_vec()))),
    );
}

#[test]
fn sync_messages() {
    let mut values = Vec::new();
    for (index, value) in [(0x0102_0304, 0x0506_0708_090a_0b0c), (5, u64::MAX)] {
        sync::Value { index, value }.push(&mut values);
    }
    let message = |kind: &sync::MessageType| {
        let message = sync::Repr {
            outcome: sync::Outcome::Done as u8,
            operation: sync::Operation::Set as u8,
            group: 0x1112,
            kind: sync::CutKind::Filled as u8,
            switch_id: 0x1314_1516,
            incarnation: 0x1718_191a,
            term: 0x2122_2324_2526_2728,
            starter: 0x292a_2b2c_2d2e_2f30,
            poll: 0x3132_3334_3536_3738,
            stamp: 0x393a_3b3c_3d3e_3f40,
            position: 0x4142_4344_4546_4748,
            before: 0x494a_4b4c_4d4e_4f50,
            after: 0x5152_5354_5556_5758,
            bound: 0x595a_5b5c_5d5e_5f60,
            threshold: 0x6162_6364_6566_6768,
            queued: 0x696a_6b6c,
            epoch: 0x6d6e_6f70,
            number: 0x7172_7374_7576_7778,
            operand: 0x797a_7b7c_7d7e_7f80,
            time: 0x8182_8384_8586,
            sweep: 0x8788_898a,
            lost: 0x8b8c_8d8e,
            fetch: 0x8f90,
            ..sync::Repr::new(*kind)
        };
        let message = match kind {
            sync::MessageType::Fetched => sync::Repr {
                frozen: sync::Frozen::new(&values),
                ..message
            },
            _ => sync::Repr {
                values: sync::Values::new(&values),
                ..message
            },
        };
        let name = format!("{kind:?}").to_lowercase();
        (name, message.to_vec().expect("a message"))
    };
    compare("sync", sync::MessageType::ALL.iter().map(message).collect());
}

#[test]
fn multicast_messages() {
    let message = |kind: &multicast::MessageType| {
        let payload: &[u8] = if kind.may_bear_payload() {
            b"payload"
        } else {
            b""
        };
        let bears = if payload.is_empty() {
            0
        } else {
            multicast::flag::PAYLOAD
        };
        let message = multicast::Repr {
            code: multicast::Code::Full as u8,
            flags: multicast::flag::NO_OP | bears,
            group: 0x11,
            origin: 0x12,
            list_version: 0x1314,
            epoch: 0x1516_1718,
            incarnation: 0x191a_1b1c,
            destinations: 0x2122_2324,
            session: 0x2526,
            lane: 0x27,
            number: 0x28_292a_2b2c,
            index: 0x3132_3334,
            term: 0x3536_3738,
            before: 0x393a_3b3c,
            timestamp: 0x4142_4344_4546_4748,
            final_time: 0x5152_5354_5556_5758,
            sender_address: 0x6162_6364,
            sender_port: 0x6566,
            final_group: 0x67,
            learner: multicast::NO_LEARNER,
            commit: 0x7172_7374,
            base: 0x7576_7778,
            payload,
            ..multicast::Repr::new(*kind)
        };
        let name = format!("{kind:?}").to_lowercase();
        (name, message.to_vec().expect("a message"))
    };
    let all = multicast::MessageType::ALL;
    compare("multicast", all.iter().map(message).collect());
}
