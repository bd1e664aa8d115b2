//! Control planes that people use, unchanged, from PyPI: p4runtime-shell and finsy drive
//! a switch that runs, plainly and over mutual TLS.
//!
//! Each gets a virtual environment of its own in the target folder, made once. Where
//! there is no Python 3, or PyPI cannot be reached, the tests say so and do not run.

#![allow(clippy::disallowed_methods)]

mod support;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::STATEPLANE;
use support::python::{environment, script, without_python};
use support::switch::Served;

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../edge/rpc/tests/programs/control.p4")
}

/// A root, and certificates of it for a server at 127.0.0.1 and for a client, in `folder`.
fn certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "root");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.join("root.pem"), root.pem()).unwrap();
    for (name, names) in [("server", ["127.0.0.1"]), ("client", ["controller"])] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.map(str::to_owned)).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &root).unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

const MUTUAL: [&str; 6] = [
    "--tls-certificate",
    "server.pem",
    "--tls-key",
    "server.key",
    "--tls-client-roots",
    "root.pem",
];

/// Lets a client's script drive a switch, over mutual TLS if `tls`.
fn drive(package: &str, version: &str, name: &str, engine: &str, tls: bool) {
    drive_workers(package, version, name, engine, (tls, "1"));
}

/// Like [`drive`], with so many workers.
fn drive_workers(
    package: &str,
    version: &str,
    name: &str,
    engine: &str,
    (tls, workers): (bool, &str),
) {
    let wanted = format!("{package}=={version}");
    let python = match environment(&format!("{package}-{version}"), &[&wanted]) {
        Ok(python) => python,
        Err(reason) => return without_python(&wanted, &reason),
    };
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let mut options = vec!["--workers", workers];
    options.extend(MUTUAL.iter().filter(|_| tls));
    let served = Served::alone(&program(), engine, folder.path(), &options);
    let info = folder.path().join("p4info.txtpb");
    let compiled = Command::new(STATEPLANE)
        .arg("compile")
        .arg(program())
        .arg("--p4info")
        .arg(&info)
        .output()
        .unwrap();
    assert!(compiled.status.success());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4runtime");
    let mut command = Command::new(python);
    command
        .arg(scripts.join(name))
        .arg(&served.address)
        .arg(&info)
        .arg(program());
    if tls {
        command.arg(folder.path());
    }
    script(&mut command, "all done");
}

#[test]
fn p4runtime_shell_drives_the_interpreter() {
    drive("p4runtime-shell", "0.0.6", "shell.py", "interp", false);
}

#[test]
fn p4runtime_shell_drives_machine_code_over_mutual_tls() {
    drive("p4runtime-shell", "0.0.6", "shell.py", "native", true);
}

#[test]
fn finsy_drives_the_interpreter() {
    drive("finsy", "0.30.0", "finsy_client.py", "interp", false);
}

#[test]
fn finsy_drives_machine_code_over_mutual_tls() {
    drive("finsy", "0.30.0", "finsy_client.py", "native", true);
}

#[test]
fn p4runtime_shell_drives_several_workers() {
    let name = "p4runtime-shell";
    drive_workers(name, "0.0.6", "shell.py", "native", (false, "3"));
}

#[test]
fn finsy_drives_several_workers() {
    drive_workers("finsy", "0.30.0", "finsy_client.py", "native", (false, "3"));
}

#[test]
fn without_tls_only_this_machine_is_served() {
    let output = Command::new(STATEPLANE)
        .arg("run")
        .arg(program())
        .args(["--p4runtime", "0.0.0.0:0", "--port", "0=lo"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--tls-certificate"), "{said}");
}
