//! Packet tests and configuration files.

use stateplane_generate::{properties, source};
use stateplane_host::deployment::Deployment;
use stateplane_host::switch::SwitchFile;
use stateplane_ir::Program;
use stateplane_switch::{Switch, SwitchConfig};
use std::path::Path;
use std::sync::OnceLock;

/// A program with what scripts and files name: a table, a register, a counter.
const PROGRAM: &str = "
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct headers_t { h_t h; }
struct meta_t { bit<8> m; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<8>>(4) reg;
    counter(4, CounterType.packets_and_bytes) count;
    action send(bit<9> port) { std.egress_spec = port; }
    table t {
        key = { hdr.h.a : exact; hdr.h.b : lpm; }
        actions = { send; NoAction; }
    }
    table acl {
        key = { hdr.h.a : ternary; hdr.h.b : range; }
        actions = { send; NoAction; }
    }
    apply { t.apply(); acl.apply(); count.count((bit<32>)hdr.h.a); reg.write(0, hdr.h.a); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn program() -> Program {
    static COMPILED: OnceLock<Program> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| match source::compile(PROGRAM) {
        Ok(program) => program,
        Err(refusal) => panic!("{refusal}"),
    });
    compiled.clone()
}

/// A script is read, and runs to its end or to a line that fails.
pub(super) fn stf(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let script = match stateplane_stf::parse("script.stf", &text) {
        Ok(script) => script,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    match properties::interpreter(program(), 1) {
        Ok(engine) => {
            if let Err(error) = stateplane_stf::run(&script, engine) {
                assert!(!error.to_string().is_empty());
            }
        }
        Err(error) => panic!("{error}"),
    }
}

/// Files are read and applied, or refused.
pub(super) fn toml(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match Deployment::parse(Path::new("store.toml"), &text) {
        Ok(deployment) => {
            if let Err(error) = deployment.replica_config() {
                assert!(!error.to_string().is_empty());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let file = match SwitchFile::parse(Path::new("switch.toml"), &text) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let config = SwitchConfig {
        ports: (0..4).collect(),
        ..SwitchConfig::default()
    };
    let engine = properties::interpreter(program(), 1);
    let switch = engine.map(|engine| Switch::new(engine, config));
    match switch {
        Ok(Ok(mut switch)) => {
            if let Err(error) = file.apply(&mut switch, &mut || 4) {
                assert!(!error.to_string().is_empty());
            }
        }
        _ => panic!("no switch"),
    }
}

/// Words of scripts.
pub(super) const STF_WORDS: &[&str] = &[
    "\npacket 0 000102030405060708090a0b0c0d0e0f\n",
    "\nexpect 1 ** 00 $\n",
    "\nadd t h.a:0x01 h.b:0x0100/8 send(port:1)\n",
    "\nadd acl 10 h.a:0x1* h.b:1..5 send(1) = handle\n",
    "\nadd acl 4294967295 h.a:1&&&3 send(511)\n",
    "\nsetdefault t send(port:2)\n",
    "\nregister_write reg 0 1\n",
    "\nregister_read reg 0 == 1\n",
    "\nregister_reset reg\n",
    "\ncheck_counter count(0) packets == 1\n",
    "\nmirroring_add 1 2 truncate 20 hold 5\n",
    "\nmc_mgrp_create 1\n",
    "\nmc_node_create 1 0 1 2\n",
    "\nmc_node_associate 1 0\n",
    "\nwait\n",
    "\nadvance 100\n",
    "\nadvance 86400000000\n",
    "\nremove all\n",
    "\nno_packet\n",
    "\nexpect_none 1\n",
    "\nignore\n",
    "\ncheck_dropped ingress >= 0\n",
    "\ngenerator 1 1 00\n",
    "\\\n",
    "# program: x\n",
    "18446744073709551616",
    "0x",
    "0b2",
    "255.255.255.256",
    "::",
    "/129",
    "&&&",
    "..",
    "*",
    "$",
];

/// Words of configuration files.
pub(super) const TOML_WORDS: &[&str] = &[
    "\n[[entries]]\ntable = \"t\"\nkeys = { \"h.a\" = 1, \"h.b\" = \"1/8\" }\naction = \"send\"\nparams = { port = 1 }\n",
    "\n[[entries]]\ntable = \"acl\"\nkeys = { \"h.b\" = \"1..5\" }\naction = \"send\"\nparams = { port = 1 }\npriority = 1\n",
    "\n[[defaults]]\ntable = \"acl\"\naction = \"NoAction\"\n",
    "\n[[registers]]\nname = \"reg\"\nvalue = \"random\"\n",
    "\n[[mirror_sessions]]\nsession = 1\nport = 1\ntruncate = 0\nhold_us = 18446744073709551615\n",
    "\n[[multicast_groups]]\ngroup = 1\nreplicas = [{ port = 1 }, { port = 2, rid = 7 }]\n",
    "\n[[generators]]\nport = 1\nperiod_ms = 0\nframe = \"02\"\n",
    "\n[[watches]]\nregister = \"reg\"\nmax_age_ms = 18446744073709551615\nports = [0]\n",
    "\n[replication]\nswitch = 1\naddress = \"10.0.0.1\"\nmac = \"02::\"\nport = 1\n",
    "\n[neighbours]\ntable = \"t\"\naction = \"send\"\nlist = []\n",
    "\n[replication]\nchain = [\"10.0.0.11\"]\nposition = 0\nshards = 4\n",
    "\n[[replication.class]]\nid = 1\nstate_length = 8\nfirst_lease = \"zero\"\n",
    "\n[controller]\naddresses = [\"10.0.0.20\"]\n",
    "\n[coordination]\ngroups = 64\nreplicas = 1\n",
    "\n[[coordination.switch]]\nnumber = 1\naddress = \"10.0.0.1\"\ndomain = \"rack\"\n",
    "-1",
    "9223372036854775807",
    "\"\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "1e400",
    "nan",
    "'''",
];
