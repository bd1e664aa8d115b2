//! The lab for ordinary users: root of a user namespace of their own.
//!
//! Without root, the lab restarts itself in a user namespace where the kernel permits one
//! (`user_namespaces(7)`), with a network and a mount namespace that are gone with it. AF_XDP does
//! not work there, AF_PACKET does.

use crate::error::LabError;
use crate::tool;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const UNSHARE: [&str; 6] = [
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--propagation",
    "private",
];

/// `ip netns` and the lab's records need a place that the user may write to.
const PREPARE: &str = "mount -t tmpfs tmpfs /run && mkdir /run/netns && exec \"$0\" \"$@\"";

/// Goes on as root: at once, or as a new process image inside a user namespace.
///
/// # Errors
/// `LAB001` if the user is not root and may not make a user namespace.
pub fn become_root() -> Result<(), LabError> {
    let Err(refusal) = tool::require_root() else {
        return Ok(());
    };
    let permitted = Command::new("unshare")
        .args(UNSHARE)
        .args(["mount", "-t", "tmpfs", "tmpfs", "/run"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !permitted {
        return Err(refusal);
    }
    let program =
        std::env::current_exe().map_err(|reason| LabError::file("/proc/self/exe", reason))?;
    let reason = Command::new("unshare")
        .args(UNSHARE)
        .args(["sh", "-c", PREPARE])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .exec();
    Err(LabError::Tool {
        command: "unshare".to_owned(),
        status: "not started".to_owned(),
        output: reason.to_string(),
    })
}
