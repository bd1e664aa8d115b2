//! Waking at a time.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A descriptor that can be read from a time on. Setting it to the time that it has costs
/// nothing, whereas a wait with a time limit sets and takes back a timer each time: a few µs
/// where the processor is virtual.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    at: u64,
}

impl Alarm {
    /// An alarm without a time.
    pub(crate) fn new() -> io::Result<Alarm> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call takes no memory; its outcome is checked.
        #[allow(unsafe_code)]
        let descriptor = unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nobody else has it.
        #[allow(unsafe_code)]
        let timer = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Alarm { timer, at: 0 })
    }

    /// What can be read from the time on.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.timer.as_raw_fd()
    }

    /// Sets it to `at`, in µs of [`boot_time_us`](crate::clock::boot_time_us), not 0.
    pub(crate) fn set(&mut self, at: u64) -> io::Result<()> {
        if at == self.at {
            return Ok(());
        }
        let time = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: (at / 1_000_000) as libc::time_t,
                tv_nsec: (at % 1_000_000 * 1_000) as libc::c_long,
            },
        };
        // SAFETY: the time lives through the call, and a null pointer asks for no old one.
        #[allow(unsafe_code)]
        let outcome = unsafe {
            libc::timerfd_settime(
                self.timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const time,
                std::ptr::null_mut(),
            )
        };
        if outcome < 0 {
            return Err(io::Error::last_os_error());
        }
        self.at = at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::boot_time_us;
    use crate::poll::Readable;

    #[test]
    fn it_goes_off_at_its_time_and_again_when_it_is_set_anew() {
        let mut alarm = Alarm::new().unwrap();
        let mut readable = Readable::new([alarm.descriptor()]);
        for _ in 0..2 {
            let at = boot_time_us() + 20_000;
            alarm.set(at).unwrap();
            alarm.set(at).unwrap();
            readable.wait(Some(0)).unwrap();
            assert!(!readable.is_ready(0));
            readable.wait(None).unwrap();
            assert!(readable.is_ready(0));
            assert!(boot_time_us() >= at);
        }
    }
}
