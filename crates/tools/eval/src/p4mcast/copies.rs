//! Configurations of switches that run `lab/eval/p4mcast/limit.p4` or `poster.p4`.

use super::system::{self, RECEIVERS, Shape, System};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Rid of the poster's copy to the replica.
const REPLICA: u16 = 16;

/// The configuration of a switch: targets of copies, multicast groups, and the poster's registers.
pub fn config(system: System, shape: Shape, place: u8) -> String {
    let mut text = String::new();
    let source = system::place(place);
    let mut target = |rid: u16, address: Ipv4Addr, mac: String| {
        let _ = writeln!(
            text,
            "[[entries]]\ntable = \"target.targets\"\nkeys = [{rid}]\naction = \"reach\"\n\
             params = [\"{address}\", \"{mac}\", \"{source}\", \"{}\"]",
            switch_mac(place),
        );
    };
    if system == System::Limit {
        for number in 0..shape.groups * RECEIVERS {
            target(
                rid(number),
                *system::receiver(number).ip(),
                host_mac(number),
            );
        }
        for map in 1..4 {
            let all = 0..shape.groups * RECEIVERS;
            let receivers = all.filter(|number| map >> (number / RECEIVERS) & 1 == 1);
            group(&mut text, map, receivers.map(rid));
        }
        return text;
    }
    let others = (0..shape.places()).filter(|other| *other != place);
    for other in others.clone() {
        target(rid(other), system::place(other), switch_mac(other));
    }
    let replica = shape.receiver_of(place);
    if let Some(number) = replica {
        target(REPLICA, *system::receiver(number).ip(), host_mac(number));
    }
    for map in 1..8 {
        let members = others.clone();
        let members = members.filter(|other| map >> shape.group_of(*other) & 1 == 1);
        let replica = replica.filter(|_| map & 4 == 4).map(|_| REPLICA);
        group(&mut text, map, members.map(rid).chain(replica));
    }
    let mut register = |name: &str, index: u8, value: u8| {
        let _ = writeln!(
            text,
            "[[registers]]\nname = \"poster_{name}\"\nindex = {index}\nvalue = {value}"
        );
    };
    register("group", 0, shape.group_of(place));
    register("place", 0, place);
    register("quorum", 0, shape.majority());
    register("leaders", 0, 0);
    // Without a second group no place is in it.
    let second = if shape.groups > 1 {
        shape.leader(1)
    } else {
        u8::MAX
    };
    register("leaders", 1, second);
    text
}

/// Rid of a place or a receiver.
fn rid(number: u8) -> u16 {
    u16::from(number) + 1
}

fn group(text: &mut String, map: u8, rids: impl Iterator<Item = u16>) {
    let replicas: Vec<String> = rids
        .map(|rid| format!("{{ port = 0, rid = {rid} }}"))
        .collect();
    if !replicas.is_empty() {
        let list = replicas.join(", ");
        let _ = writeln!(
            text,
            "[[multicast_groups]]\ngroup = {map}\nreplicas = [{list}]"
        );
    }
}

/// Ethernet addresses of `lab/eval/p4mcast.toml`.
fn switch_mac(place: u8) -> String {
    format!("02:00:00:00:a0:{:02}", place + 1)
}

fn host_mac(receiver: u8) -> String {
    format!("02:00:00:00:b0:{}", receiver + 11)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Shape = Shape {
        groups: 2,
        members: 3,
    };

    #[test]
    fn the_limit_gives_messages_to_the_receivers_of_their_groups() {
        let text = config(System::Limit, TWO, 0);
        let of = |rids: &[u8]| {
            let all = rids
                .iter()
                .map(|rid| format!("{{ port = 0, rid = {rid} }}"));
            all.collect::<Vec<_>>().join(", ")
        };
        for (map, rids) in [
            (1, &[1, 2, 3][..]),
            (2, &[4, 5, 6]),
            (3, &[1, 2, 3, 4, 5, 6]),
        ] {
            let list = format!("group = {map}\nreplicas = [{}]", of(rids));
            assert!(text.contains(&list), "{text}");
        }
        assert!(text.contains("keys = [6]\naction = \"reach\"\nparams = [\"10.30.0.16\""));
    }

    #[test]
    fn a_switch_of_the_poster_reaches_all_others_and_its_replica() {
        let text = config(System::Poster, TWO, 4);
        let list = "group = 6\nreplicas = [{ port = 0, rid = 4 }, { port = 0, rid = 6 }, \
                    { port = 0, rid = 16 }]";
        assert!(text.contains(list), "{text}");
        assert!(text.contains("\"poster_leaders\"\nindex = 1\nvalue = 3"));
        assert!(text.contains("keys = [16]\naction = \"reach\"\nparams = [\"10.30.0.15\""));
    }
}
