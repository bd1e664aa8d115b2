//! Tests as they are written for the Packet Test Framework: packets made with scapy on veth
//! pairs, and tables set over P4Runtime with an unmodified client, for a router, a NAT and a
//! firewall.
//!
//! They need root, to make a network namespace, and PyPI; elsewhere they say so.

#![allow(clippy::disallowed_methods)]

mod support;

use std::path::Path;
use std::process::Command;
use support::namespaces::Namespaces;
use support::python::{environment, script, skip, without_python};
use support::switch::Served;
use support::{STATEPLANE, missing};

const PACKAGES: [&str; 3] = ["ptf==0.12.0", "scapy==2.8.0", "p4runtime-shell==0.0.6"];

/// Ports of the switch, each with a cable to the test.
const PORTS: u16 = 3;

/// Runs the tests of `name`.py against `name`.p4.
fn test(name: &str, engine: &str) {
    if let Some(reason) = missing(&["ip"]) {
        return skip("PTF tests", &reason);
    }
    let python = match environment("ptf-0.12.0", &PACKAGES) {
        Ok(python) => python,
        Err(reason) => return without_python("PTF tests", &reason),
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptf");
    let program = tests.join(format!("programs/{name}.p4"));
    let folder = tempfile::tempdir().unwrap();
    let info = folder.path().join("p4info.txtpb");
    let compiled = Command::new(STATEPLANE)
        .arg("compile")
        .arg(&program)
        .arg("--p4info")
        .arg(&info)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    let namespace = format!("{name}-{engine}");
    let namespaces = Namespaces::new(&[&namespace]);
    let mut run = namespaces.command(&namespace, STATEPLANE);
    run.arg("run")
        .arg(&program)
        .args(["--engine", engine, "--p4runtime", "127.0.0.1:0"]);
    let mut ptf = namespaces.command(&namespace, python.with_file_name("ptf").to_str().unwrap());
    for port in 0..PORTS {
        let (inner, outer) = (format!("s{port}"), format!("t{port}"));
        namespaces.link((&namespace, &inner), (&namespace, &outer));
        run.args(["--port", &format!("{port}={inner}")]);
        ptf.args(["--interface", &format!("{port}@{outer}")]);
    }
    let served = Served::start(&mut run);
    let parameters = format!("address='{}';p4info='{}'", served.address, info.display());
    ptf.current_dir(folder.path())
        .arg("--test-dir")
        .arg(&tests)
        .args(["--test-params", &parameters, "--quiet", name]);
    script(&mut ptf, "OK");
}

#[test]
fn the_router_passes_on_machine_code() {
    test("router", "native");
}

#[test]
fn the_router_passes_on_the_interpreter() {
    test("router", "interp");
}

#[test]
fn the_nat_passes_on_machine_code() {
    test("nat", "native");
}

#[test]
fn the_firewall_passes_on_machine_code() {
    test("firewall", "native");
}
