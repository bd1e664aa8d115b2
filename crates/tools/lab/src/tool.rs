//! The programs that the lab calls, and reading of what they say.

use crate::error::LabError;
use crate::interrupt;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands that building a lab needs, with their Debian packages.
pub(crate) const BUILDING: [(&str, &str); 3] = [
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
    ("setpriv", "util-linux"),
];
/// Further commands that the demonstration needs.
pub(crate) const MEASURING: [(&str, &str); 1] = [("iperf3", "iperf3")];

/// Refuses if a program, given with its Debian package, is not on the PATH.
///
/// # Errors
/// `LAB002`.
pub fn require(tools: &[(&'static str, &'static str)]) -> Result<(), LabError> {
    for &(tool, package) in tools {
        if find(tool).is_none() {
            return Err(LabError::ToolMissing { tool, package });
        }
    }
    Ok(())
}

/// Path of a program that is on the PATH.
pub(crate) fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|directory| directory.join(tool));
    found.find(|path| path.is_file())
}

/// The file at `path`, or the one that was installed with this program: in `share/stateplane`
/// beside the folder of the program's own.
pub(crate) fn data(path: &Path) -> PathBuf {
    let installed = || {
        let program = std::env::current_exe().ok()?;
        let prefix = program.parent()?.parent()?;
        Some(prefix.join("share/stateplane").join(path)).filter(|path| path.exists())
    };
    if path.exists() {
        path.to_path_buf()
    } else {
        installed().unwrap_or_else(|| path.to_path_buf())
    }
}

/// Refuses unless the effective user is root.
///
/// # Errors
/// `LAB001`.
pub fn require_root() -> Result<(), LabError> {
    let own = Path::new("/proc/self");
    let uid = own
        .metadata()
        .map_err(|reason| LabError::file(own, reason))?
        .uid();
    if uid == 0 {
        Ok(())
    } else {
        Err(LabError::NotRoot(uid))
    }
}

/// Runs a program to its end with `input` on its standard input; gives its standard
/// output. It runs in a process group of its own, so that a terminal's ^C does not
/// stop it halfway.
pub(crate) fn run(words: &[&str], input: &str) -> Result<String, LabError> {
    run_to(words, input, &[0])
}

/// Runs a program like [`run`], which may end with one of `codes`.
pub(crate) fn run_to(words: &[&str], input: &str, codes: &[i32]) -> Result<String, LabError> {
    let failed = |status: String, output: String| {
        if interrupt::requested() {
            return LabError::Interrupted;
        }
        let command = words.join(" ");
        LabError::Tool {
            command,
            status,
            output,
        }
    };
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| failed("no program".to_owned(), String::new()))?;
    let io_failed = |reason: std::io::Error| failed(reason.to_string(), String::new());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(io_failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that fails early closes its input; its status tells more.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(io_failed)?;
    if output
        .status
        .code()
        .is_some_and(|code| codes.contains(&code))
    {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(output.status.to_string(), said.trim().to_owned()))
}

/// The last `lines` lines of a file, or why there are none.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    match std::fs::read(path) {
        Err(reason) => format!("({reason})"),
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let all: Vec<_> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
    }
}
