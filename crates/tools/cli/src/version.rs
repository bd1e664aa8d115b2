//! `stateplane --version`: release, commit and features.

use stateplane_rpc::P4RUNTIME_VERSION;
use stateplane_wire::{coordination, replication, sync};
use std::sync::LazyLock;

/// Commit of the build; empty if it is not known.
const COMMIT: &str = env!("STATEPLANE_BUILT_COMMIT");

/// Digits of a commit that `-V` shows.
const SHORT: usize = 12;

/// One line for `-V`: release and commit.
pub static LINE: LazyLock<String> = LazyLock::new(|| {
    let release = env!("CARGO_PKG_VERSION");
    match COMMIT.get(..SHORT).unwrap_or(COMMIT) {
        "" => release.to_owned(),
        commit => format!("{release} ({commit})"),
    }
});

/// The text for `--version`: release, commit, target and features.
pub static TEXT: LazyLock<String> = LazyLock::new(|| {
    let commit = match COMMIT {
        "" => "not recorded",
        commit => commit,
    };
    let features = [
        "engines native (machine code), interp",
        "ports AF_XDP, AF_PACKET, TAP, pcap",
        &format!("P4Runtime {P4RUNTIME_VERSION} with TLS"),
        "decisions in etcd",
        "copies of views in Redis",
        &format!(
            "protocols replication {}, coordination {}, sync {}",
            replication::VERSION,
            coordination::VERSION,
            sync::VERSION
        ),
    ];
    let features: String = features.map(|it| format!("\n  {it}")).concat();
    format!(
        "{}\ncommit: {commit}\ntarget: {}\nfeatures:{features}",
        env!("CARGO_PKG_VERSION"),
        env!("STATEPLANE_BUILT_TARGET"),
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_tells_release_commit_and_features() {
        assert!(TEXT.starts_with(env!("CARGO_PKG_VERSION")), "{}", *TEXT);
        for told in ["\ncommit: ", "\ntarget: ", "AF_XDP", "replication 2"] {
            assert!(TEXT.contains(told), "{}", *TEXT);
        }
        assert!(LINE.starts_with(env!("CARGO_PKG_VERSION")) && !LINE.contains('\n'));
    }
}
