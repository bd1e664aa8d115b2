use stateplane_wire::coordination;

use super::*;
use crate::sealing::frames::{A, B, guard, message};

/// The port whose messages are sealed, and another one.
const SEALED: Port = 2;
const OPEN: Port = 1;

#[test]
fn a_stranger_under_the_own_address_is_dropped_at_every_port() {
    let switch = || Sealing::new(guard(1, 2, B), vec![SEALED]);
    for port in [SEALED, OPEN] {
        let mut sealing = switch().with_coordination(Some(A));
        let mut forged = message(coordination::PORT, coordination::PORT);
        assert_eq!(sealing.open(0, port, &mut forged), None);
        assert_eq!(sealing.report().frames.own_source, 1);
        // A switch of another service routes it.
        assert_eq!(switch().open(0, port, &mut forged), Some(forged.len()));
    }
}

/// Messages for the switch have to be sealed at the port that says so, and at no other.
#[test]
fn messages_are_opened_at_sealed_ports_alone() {
    let mut sealing = Sealing::new(guard(1, 2, B), vec![SEALED]).with_coordination(Some(B));
    let mut unsealed = message(5000, coordination::PORT);
    let length = unsealed.len();
    assert_eq!(sealing.open(0, OPEN, &mut unsealed), Some(length));
    assert_eq!(sealing.open(0, SEALED, &mut unsealed), None);
}
