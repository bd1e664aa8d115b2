//! A group takes keys for half of its places before it refuses one.

use crate::attacks::{EPOCH, INCARNATION, configure, request};
use crate::options::Options;
use crate::places::{CONTROLLER, CONTROLLER_PORT, Places, SWITCHES, client_address, switch_socket};
use crate::scenario::Scenario;
use crate::simulator::Simulator;
use stateplane_apps::datagram::frame;
use stateplane_wire::coordination::{Key, Operand, Operation};
use stateplane_world::Random;

/// Places of a group, as the program has them unless told otherwise.
const PLACES: u32 = 1_024;

#[test]
fn a_group_has_room_for_half_as_many_keys_as_places() {
    let options = Options::new(Scenario {
        slots: PLACES,
        ..Scenario::quiet()
    });
    let simulator = Simulator::new(options).expect("the program compiles");
    let places = Places { clients: 4 };
    let device = simulator.device(&places, 0, INCARNATION);
    let mut device = device.expect("a switch");
    for (to, port) in places.routes(0, &[true; SWITCHES]) {
        device.route(to, port);
    }
    let mut random = Random::new(8);
    let mut now = 1_000;
    for group in 0..2 {
        let mut founds = configure(group, &[0], EPOCH, INCARNATION);
        let drawn = u128::from(random.next()) << 64 | u128::from(random.next());
        founds.operand = Operand(drawn.to_be_bytes());
        let founds = founds.to_vec().expect("a message");
        let founds = frame(CONTROLLER, switch_socket(0), &founds);
        device.handle_frame(now, CONTROLLER_PORT, &founds);
        for number in 1..=PLACES / 2 {
            let mut write = request(group, Operation::Write, number);
            write.value = &[1; 8];
            let mut key = [0; 16];
            key[..8].copy_from_slice(&random.next().to_be_bytes());
            write.key = Key(key);
            let write = write.to_vec().expect("a message");
            now += 1;
            let frame = frame(client_address(0), switch_socket(0), &write);
            device.handle_frame(now, Places::client_port(0), &frame);
            while device.poll_transmit().is_some() {}
        }
    }
    let kinds = device.words("slot_kind");
    let places = PLACES as usize;
    for group in 0..2 {
        let own = &kinds[group * places..(group + 1) * places];
        let taken = own.iter().filter(|kind| **kind != 0).count();
        assert_eq!(taken, places / 2, "group {group}");
    }
}
