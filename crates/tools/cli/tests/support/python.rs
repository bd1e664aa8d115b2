//! Python packages of PyPI, in virtual environments that the tests make.

use super::{errors, repository};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Tools with which the Python package of sync is built and used, and a client of gNMI.
pub const SYNC_PACKAGES: [&str; 4] = [
    "grpcio-tools==1.85.1",
    "numpy==2.4.6",
    "pygnmi==0.8.15",
    "setuptools==84.2.1",
];

/// Longest time to make an environment.
const INSTALL: Duration = Duration::from_secs(240);

/// Longest time for one script.
const SCRIPT: Duration = Duration::from_secs(120);

/// Says that a test does not run, and why.
pub fn skip(test: &str, reason: &str) {
    // The harness keeps what a test that passes prints, but not what it writes so.
    let _ = writeln!(std::io::stderr(), "{test} not run: {reason}");
}

/// Says that a test does not run because Python or its packages cannot be had. Where `CI` is
/// set this is a failure: there they are to be installed.
///
/// # Panics
///
/// If `CI` is set, fails; else says why the test is skipped.
pub fn without_python(test: &str, reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{test} not run: {reason}");
    skip(test, reason);
}

/// The Python of an environment with `packages`, made once by whichever test asks first,
/// while the others wait; or why there is none.
///
/// # Errors
///
/// Returns the output of Python or pip: there is no `python3`, no `venv`, or no connection to PyPI.
pub fn environment(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("venv-{name}"));
    let lock = folder.with_file_name(format!("venv-{name}.lock"));
    let lock = File::create(lock).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let python = folder.join("bin/python");
    let marker = folder.join("installed");
    let wanted = packages.join(" ");
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let made = run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&folder));
    made.map_err(|said| {
        format!(
            "python3 makes no virtual environment (Debian: apt-get install python3-venv): {said}"
        )
    })?;
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ])
    .args(["--timeout", "15", "--retries", "3"])
    .args(packages);
    run(&mut pip).map_err(|said| format!("pip cannot install {wanted}: {said}"))?;
    std::fs::write(marker, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

/// Runs a command that installs something, and gives the end of what it said if it failed.
fn run(command: &mut Command) -> Result<(), String> {
    let (ended, said) = bounded(command, INSTALL)?;
    let last = said.trim().lines().rev().take(3).collect::<Vec<_>>();
    match ended {
        Some(true) => Ok(()),
        Some(false) => Err(last.into_iter().rev().collect::<Vec<_>>().join("; ")),
        None => Err(format!("it takes longer than {INSTALL:?}")),
    }
}

/// Success of a command, `None` if it took too long, and its output.
fn bounded(command: &mut Command, longest: Duration) -> Result<(Option<bool>, String), String> {
    let wrong = |error: std::io::Error| error.to_string();
    let output = tempfile::NamedTempFile::new().map_err(wrong)?;
    let append = || {
        let mut options = std::fs::OpenOptions::new();
        options.append(true).open(output.path()).map_err(wrong)
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(append()?)
        .stderr(append()?)
        .spawn()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let start = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break Some(status.success());
        }
        if start.elapsed() > longest {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let said = std::fs::read(output.path()).unwrap_or_default();
    Ok((ended, String::from_utf8_lossy(&said).into_owned()))
}

/// Runs a script, which says `end` when it has come to its end.
///
/// # Panics
///
/// If it fails, takes too long or ends early; with what it said.
pub fn script(command: &mut Command, end: &str) {
    let (ended, said) = bounded(command, SCRIPT).unwrap();
    assert!(ended.is_some(), "it takes longer than {SCRIPT:?}:\n{said}");
    assert!(ended == Some(true) && said.contains(end), "{said}");
}

/// Builds the wheel of python/stateplane_sync from a copy of it, and unpacks it; gives the folder.
///
/// # Panics
///
/// If it cannot be built; with what pip said.
pub fn sync_wheel(python: &Path, folder: &Path) -> PathBuf {
    let copy = |path: &str| {
        let target = folder.join(path);
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        let mut copied = Command::new("cp");
        let copied = copied.arg("-r").arg(repository().join(path)).arg(target);
        assert!(copied.status().expect("cp").success());
    };
    copy("python/stateplane_sync");
    copy("crates/edge/view/proto");
    let (wheels, site) = (folder.join("wheels"), folder.join("site"));
    let package = folder.join("python/stateplane_sync");
    let pip = |arguments: &[&str], path: &Path, target: &Path| {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"])
            .args(arguments)
            .arg(target)
            .arg(path);
        let output = pip.output().expect("pip");
        assert!(output.status.success(), "{}", errors(&output));
    };
    let build = ["wheel", "--no-build-isolation", "--no-deps", "--wheel-dir"];
    pip(&build, &package, &wheels);
    let mut built = std::fs::read_dir(&wheels).expect("wheels");
    let wheel = built.next().expect("a wheel").expect("an entry").path();
    pip(&["install", "--no-deps", "--target"], &wheel, &site);
    site
}
