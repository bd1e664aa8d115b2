//! A switch of the chain, and one that only forwards.

use super::network::{CLIENT, Chain, RELAY, SWITCHES, client_mac, relay_mac};
use stateplane_bench::switch::compile;
use stateplane_host::ports::{Access, PortSpec};
use stateplane_host::sealing::Guard;
use stateplane_host::switch::{RunOptions, Sealing, SwitchFile, run_switch};
use stateplane_native::{Native, Options};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The service's program, and the relays'.
pub const PROGRAM: &str = "apps/coordination/coordination_switch.p4";
pub const RELAY_PROGRAM: &str = "bench/p4/relay.p4";

/// Configuration of switch `number`: the others lie on its left (port 0) and right (port 1), the
/// client on the right of all, so that answers need not go back.
pub fn configuration(chain: Chain, number: usize) -> String {
    let address = chain.switch(number);
    let mut text = format!("[coordination]\nswitch = {number}\naddress = \"{address}\"\n");
    let left = (0, neighbour_mac(chain, number, 0));
    let right = (1, neighbour_mac(chain, number, 1));
    let others = (1..=SWITCHES).filter(|other| *other != number);
    let others = others.map(|other| {
        let side = if other < number { &left } else { &right };
        (chain.switch(other), side)
    });
    let mut list = String::new();
    for (to, (port, mac)) in others.chain([(CLIENT, &right)]) {
        let _ = write!(
            text,
            "[[entries]]\ntable = \"router.routes\"\nkeys = [\"{to}/32\"]\naction = \"connected\"\n"
        );
        let source = chain.switch_mac(number, *port);
        let _ = write!(
            list,
            "{{ address = \"{to}\", port = {port}, mac = \"{mac}\", source_mac = \"{source}\" }}, "
        );
    }
    text + &format!(
        "[neighbours]\ntable = \"router.neighbours\"\naction = \"forward\"\nlist = [{list}]\n"
    )
}

/// Ethernet address of what is behind a port of a switch.
fn neighbour_mac(chain: Chain, number: usize, port: usize) -> String {
    let [first, last] = chain.client_interfaces();
    match (number, port) {
        (1, 0) => client_mac(first),
        (SWITCHES, 1) => client_mac(last),
        (_, 0) => chain.switch_mac(number - 1, 1),
        _ => chain.switch_mac(number + 1, 0),
    }
}

/// Configuration of relay `number`: what comes by port 0 leaves by port 1, to the next relay and
/// from the last one to the client.
pub fn relay_configuration(number: usize) -> String {
    let (mac, address, port) = if number == SWITCHES {
        (client_mac(4), CLIENT, Chain::Plain.client_port())
    } else {
        let port = stateplane_wire::coordination::PORT;
        (relay_mac(number + 1, 0), RELAY, port)
    };
    let source_mac = relay_mac(number, 1);
    format!(
        "[[entries]]\ntable = \"hops\"\nkeys = [\"0\"]\naction = \"send\"\n\
         params = [\"1\", \"{mac}\", \"{source_mac}\", \"{address}\", \"{port}\"]\n"
    )
}

/// The role of a switch: runs until its input ends. Its arguments are its chain's letter, its number
/// and, if its ports seal messages, its file of keys.
pub fn run(arguments: &[&str]) {
    let (chain, number, keys) = match arguments {
        [chain, number] => (chain, number, None),
        [chain, number, keys] => (chain, number, Some(Path::new(keys))),
        _ => panic!("switch takes a chain, a number and perhaps a file of keys"),
    };
    let (chain, number) = (Chain::of_node(chain), number.parse().expect("a number"));
    let sealing = keys.map(|keys| {
        let guard = Guard::read(keys).expect("a file of keys");
        Sealing::new(guard, vec![0, 1]).with_coordination(Some(chain.switch(number)))
    });
    serve(PROGRAM, &configuration(chain, number), sealing);
}

/// The role of a relay.
pub fn relay(number: &str) {
    let number: usize = number.parse().expect("a number");
    serve(RELAY_PROGRAM, &relay_configuration(number), None);
}

/// Runs `program` with a configuration between two interfaces until the input ends.
fn serve(program: &str, text: &str, sealing: Option<Sealing>) {
    let file = SwitchFile::parse(Path::new("switch.toml"), text).expect("a configuration");
    let engine = Native::new(compile(program), Options::default()).expect("the program loads");
    let stop = AtomicBool::new(false);
    let ports: Vec<_> = (0..2)
        .map(|port| {
            let name = format!("p{port}");
            let access = Access::Best;
            (port, PortSpec::Interface { name, access })
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stop.store(true, Ordering::Relaxed);
        });
        let options = RunOptions {
            stop: &stop,
            ready: &mut |_| println!("ready"),
            status: None,
            notify: &mut |_, _, _| {},
            patience: None,
            sealing,
            flows: None,
        };
        if let Err(error) = run_switch(engine, &file, &ports, options) {
            eprintln!("{error}");
            std::process::exit(1);
        }
    });
}
