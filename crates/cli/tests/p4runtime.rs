//! Control planes that people use, unchanged, from PyPI: p4runtime-shell and finsy drive
//! a switch that runs.
//!
//! Each gets a virtual environment of its own in the target folder, made once. Where
//! there is no Python 3, or PyPI cannot be reached, the tests say so and do not run.

#![allow(clippy::disallowed_methods)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const STATEPLANE: &str = env!("CARGO_BIN_EXE_stateplane");

/// Longest time for one script.
const PATIENCE: Duration = Duration::from_secs(120);

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpc/tests/programs/control.p4")
}

/// The Python of an environment with a package; a reason why there is none.
fn python(package: &str, version: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("venv-{package}-{version}"));
    let python = folder.join("bin/python");
    let marker = folder.join("complete");
    if marker.exists() {
        return Ok(python);
    }
    let run = |command: &mut Command| -> Result<(), String> {
        let Output { status, stderr, .. } = command.output().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&stderr).trim().to_owned()),
        }
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "-q"])
        .arg(format!("{package}=={version}")))?;
    std::fs::write(marker, "").map_err(|error| error.to_string())?;
    Ok(python)
}

/// A switch that runs, with a port that is a capture.
struct Running {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Running {
    fn start(engine: &str) -> Running {
        let folder = tempfile::tempdir().unwrap();
        // The header of a capture without frames, little-endian, of Ethernet.
        let header = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1];
        let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(folder.path().join("in.pcap"), bytes).unwrap();
        let mut child = Command::new(STATEPLANE)
            .current_dir(folder.path())
            .arg("run")
            .arg(program().canonicalize().unwrap())
            .args(["--engine", engine])
            .args(["--p4runtime", "127.0.0.1:0", "--cpu-port", "510"])
            .args(["--port", "0=pcap:in.pcap,out.pcap"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let address = lines
            .find_map(|line| Some(line.strip_prefix("P4Runtime: ")?.to_owned()))
            .expect("the switch tells where it listens");
        // What it says later is read, so that it never waits.
        std::thread::spawn(move || lines.for_each(drop));
        Running {
            child,
            address,
            folder,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drive(package: &str, version: &str, script: &str) {
    let python = match python(package, version) {
        Ok(python) => python,
        Err(reason) => {
            println!("not run: {package} {version} cannot be installed: {reason}");
            return;
        }
    };
    let running = Running::start("interp");
    let info = running.folder.path().join("p4info.txtpb");
    let compiled = Command::new(STATEPLANE)
        .arg("compile")
        .arg(program())
        .arg("--p4info")
        .arg(&info)
        .output()
        .unwrap();
    assert!(compiled.status.success());
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/p4runtime")
        .join(script);
    let output = running.folder.path().join("output");
    let file = std::fs::File::create(&output).unwrap();
    let mut child = Command::new(python)
        .arg(script)
        .arg(&running.address)
        .arg(&info)
        .arg(program())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let said = std::fs::read_to_string(output).unwrap();
    assert!(status.is_some_and(|status| status.success()), "{said}");
    assert!(said.contains("all done"), "{said}");
}

#[test]
fn p4runtime_shell_drives_the_switch() {
    drive("p4runtime-shell", "0.0.6", "shell.py");
}

#[test]
fn finsy_drives_the_switch() {
    drive("finsy", "0.30.0", "finsy_client.py");
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
