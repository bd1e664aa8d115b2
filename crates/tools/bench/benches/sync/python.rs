//! The Python package beside the client of p4runtime-shell, each in a process of its own, in turns.

use super::rounds::compare;
use stateplane_bench::Report;
use stateplane_bench::view::SOURCES;
use stateplane_eval::EvalError;
use stateplane_eval::approsync::{Served, Subject};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Packages of PyPI: their dependencies do not agree, so each has an environment.
const VIEW: [&str; 3] = ["grpcio-tools==1.85.1", "numpy==2.4.6", "setuptools==84.2.1"];
const SHELL: [&str; 1] = ["p4runtime-shell==0.0.6"];

/// Turns.
const TURNS: usize = 11;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Runs a command that installs something.
fn install(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(said.lines().next_back().unwrap_or("it failed").to_owned())
    }
}

/// The Python of an environment in the target folder with `packages`, which is made once, and then
/// gets what is in the folder `local` of the repository.
fn environment(name: &str, packages: &[&str], local: Option<&str>) -> Result<PathBuf, String> {
    let folder = root().join("target/bench").join(name);
    let python = folder.join("bin/python");
    let marker = folder.join("installed");
    let wanted = packages.join(" ");
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    if !std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        install(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&folder),
        )?;
        let patience = ["--timeout", "15", "--retries", "3"];
        install(
            Command::new(&python)
                .args(pip)
                .args(patience)
                .args(packages),
        )?;
        std::fs::write(marker, wanted).map_err(|error| error.to_string())?;
    }
    if let Some(local) = local {
        let options = ["--no-build-isolation", "--no-deps", "--force-reinstall"];
        install(
            Command::new(&python)
                .args(pip)
                .args(options)
                .arg(root().join(local)),
        )?;
    }
    Ok(python)
}

/// A process that reads when it is told to.
struct Reader {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Reader {
    fn start(python: &Path, arguments: [&str; 3]) -> Result<Reader, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/sync/read.py");
        let mut child = Command::new(python)
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("it has no input and output".to_owned());
        };
        let mut reader = Reader {
            child,
            input,
            output: BufReader::new(output),
        };
        match reader.line().as_str() {
            "ready" => Ok(reader),
            said => Err(format!("it said {said:?}")),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.output.read_line(&mut line);
        line.trim().to_owned()
    }

    /// Time of a read of all values.
    fn read(&mut self) -> Duration {
        writeln!(self.input, "read").expect("it runs");
        let said = self.line();
        let numbers: Vec<f64> = said.split(' ').filter_map(|it| it.parse().ok()).collect();
        let [count, seconds] = numbers[..] else {
            panic!("it said {said:?}");
        };
        assert_eq!(count as u64, SOURCES, "all values");
        Duration::from_secs_f64(seconds)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure(report: &mut Report) -> Result<(), String> {
    let view = environment("python-view", &VIEW, Some("python/stateplane_sync"))?;
    let shell = environment("python-shell", &SHELL, None)?;
    let failed = |error: EvalError| error.to_string();
    let subject = Subject::counters(SOURCES as u32, 64).map_err(failed)?;
    let served = Served::start(subject).map_err(failed)?;
    let group = &served.plan().groups[0];
    let address = |of: Option<SocketAddr>| of.map_or_else(String::new, |it| it.to_string());
    let [views, p4runtime] = [served.view_address(), served.p4runtime_address()].map(address);
    let register = served
        .register_id(&group.registers[0].register)
        .map_err(failed)?;
    let mut ours = Reader::start(&view, ["view", &views, &group.name])?;
    let mut theirs = Reader::start(&shell, ["shell", &p4runtime, &register.to_string()])?;
    compare(
        report,
        TURNS,
        SOURCES,
        [
            ("view, Python", &mut || ours.read()),
            ("p4runtime-shell", &mut || theirs.read()),
        ],
    );
    Ok(())
}

/// Measures them where both can be had.
pub fn run(report: &mut Report) {
    if let Err(reason) = measure(report) {
        println!("sync: without Python: {reason}");
    }
}
