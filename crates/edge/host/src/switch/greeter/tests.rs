use super::*;

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const STORE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 11);
const OWN: MacAddress = [2, 0, 0, 0, 0, 1];
const THERE: MacAddress = [2, 0, 0, 0, 0, 9];

fn greeter(links: Vec<Port>) -> Greeter {
    let own = Own {
        switch: 1,
        incarnation: 5,
        address: SWITCH,
        mac: OWN,
        port: 2,
    };
    let flows = Flows {
        classes: [1].into(),
        state_length: 8,
        shards: Some(1),
    };
    let declared = Declared {
        chain_epoch: Some((3, Some(7))),
        ..Declared::default()
    };
    let mut greeter = Greeter::new(own, "switch.toml".to_owned(), &flows, declared, links);
    let head = HeadFile {
        address: STORE,
        mac: THERE,
        line: Some(8),
    };
    greeter.set_head(0, head);
    greeter
}

/// The greeting that is sent at `now`.
fn sent(greeter: &mut Greeter, now: u64) -> Greeting {
    greeter.handle_timeout(now, &|| None);
    let mut found = None;
    while let Some(frame) = greeter.poll_frame() {
        if Arp::of(&frame).is_none() {
            assert_eq!((&frame[..6], &frame[6..12]), (&THERE[..], &OWN[..]));
            found = Some(Greeting::parse(&frame[MESSAGE..]).unwrap());
        }
    }
    found.expect("a greeting")
}

/// The frame of an answer to `greeting`, with the settings that differ.
fn answer(greeting: &Greeting, settings: Vec<Setting>) -> Vec<u8> {
    let message = Greeting {
        answers: true,
        address: STORE,
        settings,
        file: "store.toml".to_owned(),
        ..greeting.clone()
    };
    let message = message.to_vec();
    let datagram = udp::Repr {
        source_port: replication::PORT,
        destination_port: replication::PORT,
        payload: &message,
    };
    let datagram = datagram.to_vec(STORE, SWITCH).unwrap();
    let packet = ipv4::Repr::new(STORE, SWITCH, ipv4::PROTOCOL_UDP, &datagram);
    let frame = ethernet::Repr {
        destination: ethernet::Address(OWN),
        source: ethernet::Address(THERE),
        ethertype: ethernet::TYPE_IPV4,
        payload: &packet.to_vec().unwrap(),
    };
    frame.to_vec().unwrap()
}

fn shards(value: u32) -> Setting {
    Setting {
        name: SettingName::Shards,
        index: 0,
        value: Some(value),
        line: Some(4),
    }
}

#[test]
fn links_stay_down_until_a_head_fits() {
    let mut greeter = greeter(vec![0]);
    let first = sent(&mut greeter, 0);
    assert!(greeter.holds_down(0) && !greeter.holds_down(1));
    assert!(greeter.handle(10, &answer(&first, vec![shards(2)])));
    assert!(greeter.holds_down(0) && !greeter.goes_without());
    let told = "store 10.0.0.11: shards: here 1 (its program); there 2 (store.toml:4)";
    assert_eq!(greeter.differences(), [told]);
    let next = sent(&mut greeter, SOON + 10);
    assert!(greeter.handle(SOON + 20, &answer(&next, Vec::new())));
    assert!(greeter.is_admitted() && !greeter.holds_down(0));
    assert!(greeter.report(SOON + 20).heads[0].fits);
    // A difference that comes later lowers no port.
    let next = sent(&mut greeter, 2 * SELDOM);
    assert!(greeter.handle(2 * SELDOM, &answer(&next, vec![shards(2)])));
    assert!(!greeter.holds_down(0));
    assert_eq!(greeter.differences().len(), 1);
}

#[test]
fn answers_to_others_and_old_ones_are_nobodys() {
    let mut greeter = greeter(vec![0]);
    let asked = sent(&mut greeter, 0);
    for wrong in [
        Greeting {
            incarnation: 6,
            ..asked.clone()
        },
        Greeting {
            switch_id: 2,
            ..asked.clone()
        },
        Greeting {
            number: asked.number.wrapping_sub(64),
            ..asked.clone()
        },
    ] {
        // The program gets none of them.
        assert!(greeter.handle(1, &answer(&wrong, Vec::new())));
        assert!(!greeter.is_admitted());
    }
    // To another address.
    let mut frame = answer(&asked, Vec::new());
    frame[IP + 19] ^= 1;
    assert!(!greeter.handle(1, &frame));
    let frame = answer(&asked, Vec::new());
    for length in 0..frame.len() {
        greeter.handle(1, &frame[..length]);
        assert!(!greeter.is_admitted(), "{length}");
    }
    assert!(greeter.handle(1, &frame));
    assert!(greeter.is_admitted());
}

#[test]
fn silence_is_told_with_its_beginning_and_ends() {
    let mut greeter = greeter(Vec::new());
    sent(&mut greeter, 0);
    sent(&mut greeter, SILENCE - 1);
    assert_eq!(greeter.report(SILENCE - 1).heads[0].silent_ms, None);
    assert!(!greeter.goes_without());
    let asked = sent(&mut greeter, 2 * SILENCE);
    assert_eq!(greeter.report(2 * SILENCE).heads[0].silent_ms, Some(2000));
    // Without links silence has no consequence.
    assert!(greeter.goes_without());
    greeter.handle(2 * SILENCE + 5, &answer(&asked, Vec::new()));
    let report = greeter.report(2 * SILENCE + 5);
    assert_eq!(
        (report.heads[0].silent_ms, report.heads[0].fits),
        (None, true)
    );
}

#[test]
fn causes_of_silence_are_told_apart() {
    let mut greeter = greeter(vec![0]);
    sent(&mut greeter, 0);
    let of = |greeter: &Greeter, hint| cause(&greeter.heads[&STORE], "switch.toml", hint);
    assert!(of(&greeter, None).starts_with("nobody has the address on this port (switch.toml:8)"));
    let arp = |mac| Arp {
        asks: false,
        sender_mac: mac,
        sender: STORE,
        target: SWITCH,
    };
    assert!(!greeter.handle(1, &arp([2, 0, 0, 0, 0, 7]).frame(OWN)));
    let wrong = "its MAC address is 02:00:00:00:00:07, and not 02:00:00:00:00:09 (switch.toml:8)";
    assert_eq!(of(&greeter, None), wrong);
    greeter.handle(2, &arp(THERE).frame(OWN));
    assert!(of(&greeter, None).starts_with("its machine answers ARP"));
    assert_eq!(of(&greeter, Some("keys")), "keys");
    // An ICMP error that quotes a greeting.
    let mut quoted = vec![3, 3, 0, 0, 0, 0, 0, 0];
    quoted.extend_from_slice(&[0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0]);
    quoted.extend_from_slice(&SWITCH.octets());
    quoted.extend_from_slice(&STORE.octets());
    quoted.extend_from_slice(&[0x12, 0xb9, 0x12, 0xb9, 0, 40, 0, 0]);
    let packet = ipv4::Repr::new(STORE, SWITCH, ipv4::PROTOCOL_ICMP, &quoted);
    let frame = ethernet::Repr {
        destination: ethernet::Address(OWN),
        source: ethernet::Address(THERE),
        ethertype: ethernet::TYPE_IPV4,
        payload: &packet.to_vec().unwrap(),
    };
    assert!(!greeter.handle(3, &frame.to_vec().unwrap()));
    assert!(of(&greeter, Some("keys")).starts_with("no store server listens"));
}

#[test]
fn heads_that_no_chain_has_are_left() {
    let mut greeter = greeter(vec![0]);
    let other = HeadFile {
        address: Ipv4Addr::new(10, 0, 0, 12),
        mac: THERE,
        line: None,
    };
    greeter.set_head(0, other);
    let report = greeter.report(0);
    assert_eq!(report.heads.len(), 1);
    assert_eq!(report.heads[0].address, other.address);
}
