//! Words for what keeps a switch from hearing the store.

use stateplane_wire::replication;

use super::Head;
use crate::ports::MacAddress;

/// The likely cause of a head's silence.
pub(super) fn cause(head: &Head, file: &str, hint: Option<&str>) -> String {
    let line = at(file, head.file.line);
    if head.refuses {
        let port = replication::PORT;
        return format!(
            "no store server listens at its UDP port {port} (`request_port` in its file), or none runs ({line})"
        );
    }
    if let Some(hint) = hint {
        return hint.to_owned();
    }
    match head.seen {
        None => format!(
            "nobody has the address on this port ({line}); check cable, `port`, and the addresses of switch and store"
        ),
        Some(seen) if seen != head.file.mac => format!(
            "its MAC address is {}, and not {} ({line})",
            shown(seen),
            shown(head.file.mac)
        ),
        Some(_) => format!(
            "its machine answers ARP ({line}); check that a store server runs there, and that both sides have keys, or neither"
        ),
    }
}

pub(super) fn at(file: &str, line: Option<u32>) -> String {
    match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}

pub(super) fn shown(mac: MacAddress) -> String {
    let bytes: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}
