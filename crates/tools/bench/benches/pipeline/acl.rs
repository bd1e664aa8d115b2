//! A ternary access list.

use crate::work::program;
use crate::{Numbers, captures, engines, flows, insert};
use num_bigint::BigUint;
use stateplane_bench::Report;
use stateplane_bench::limit::{Acl, Rule};
use stateplane_runtime::{Engine, KeyMatch, TargetState};
use std::net::Ipv4Addr;

/// The program.
pub const PROGRAM: &str = "bench/p4/acl.p4";

/// Rules on the five-tuple, and one for all that they leave.
pub fn rules(numbers: &mut Numbers, count: u32) -> Vec<Rule> {
    let mut rules = Vec::new();
    for priority in 1..=count {
        let lengths = [8u32, 16, 24, 32];
        let prefix = |numbers: &mut Numbers| {
            let length = lengths[numbers.below(4) as usize];
            let mask = u32::MAX << (32 - length);
            let address = 0x0a00_0000 | numbers.below(1 << 20) as u32;
            (address & mask, mask)
        };
        let port = |numbers: &mut Numbers| match numbers.below(3) {
            0 => (numbers.below(1024) as u32, 0xffff),
            _ => (0, 0),
        };
        let protocol = match numbers.below(3) {
            0 => (0, 0),
            1 => (6, 0xff),
            _ => (17, 0xff),
        };
        let (source, destination) = (prefix(numbers), prefix(numbers));
        let (source_port, destination_port) = (port(numbers), port(numbers));
        rules.push(Rule {
            fields: [source, destination, protocol, source_port, destination_port],
            priority,
            port: (numbers.below(10) > 0).then_some(1),
        });
    }
    rules.push(Rule {
        fields: [(0, 0); 5],
        priority: 0,
        port: Some(2),
    });
    // Priorities begin with 1.
    for rule in &mut rules {
        rule.priority += 1;
    }
    rules
}

/// Fills the table of the program.
pub fn fill(state: &mut TargetState, rules: &[Rule]) {
    for rule in rules {
        let keys = rule.fields.iter().map(|(value, mask)| KeyMatch::Mask {
            value: BigUint::from(*value),
            mask: BigUint::from(*mask),
        });
        let keys = keys.collect();
        let priority = rule.priority;
        match rule.port {
            Some(port) => insert(state, "rules", keys, priority, "permit", &[u64::from(port)]),
            None => insert(state, "rules", keys, priority, "deny", &[]),
        }
    }
}

/// Frames between hosts that rules name.
pub fn frames(numbers: &mut Numbers, count: usize) -> Vec<Vec<u8>> {
    flows(count, |_| {
        let mut host = || Ipv4Addr::from(0x0a00_0000 | numbers.below(1 << 20) as u32);
        (host(), host())
    })
}

pub fn run(report: &mut Report) {
    let mut numbers = Numbers(2);
    let rules = rules(&mut numbers, 1000);
    let generated = frames(&mut numbers, 4096);
    for (name, frames) in [
        ("ternary ACL, 1k rules", Some(generated)),
        (
            "ternary ACL, 1k rules, capture",
            captures::frames(captures::MIXED),
        ),
        (
            "ternary ACL, 1k rules, flood",
            captures::frames(captures::FLOOD),
        ),
    ] {
        let Some(frames) = frames else { continue };
        let (mut native, mut interp) = engines(PROGRAM, 0);
        fill(native.engine.state_mut(), &rules);
        fill(interp.engine.state_mut(), &rules);
        let mut limit = Acl::new(&rules);
        program(report, name, &frames, &mut native, &mut interp, &mut limit);
    }
}
