//! The clock that leases are counted by.

/// Microseconds since boot, the time spent in suspend included
/// (`CLOCK_BOOTTIME`, rule 7 of `docs/replication-protocol.md`).
#[allow(unsafe_code)]
pub fn boot_time_us() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to. The call cannot fail for a
    // clock that Linux has had since 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_forward() {
        let first = boot_time_us();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let second = boot_time_us();
        assert!((first + 2_000..first + 60_000_000).contains(&second));
    }
}
