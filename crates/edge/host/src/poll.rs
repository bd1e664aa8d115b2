//! Waiting for descriptors and for a time.

use crate::clock::boot_time_us;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A set of descriptors to read from, and a timer that ends the waiting for them.
#[derive(Debug)]
pub(crate) struct Readable {
    timer: Timer,
    /// The timer's descriptor, then those waited for.
    polled: Vec<libc::pollfd>,
}

impl Readable {
    /// The set of `descriptors`, which must stay open as long as they are waited for.
    pub(crate) fn new(descriptors: impl IntoIterator<Item = RawFd>) -> io::Result<Readable> {
        let timer = Timer::new()?;
        let polled = vec![polled(timer.descriptor.as_raw_fd())];
        let mut readable = Readable { timer, polled };
        readable.replace(descriptors);
        Ok(readable)
    }

    /// Waits for these descriptors from here on, and no more for those so far.
    pub(crate) fn replace(&mut self, descriptors: impl IntoIterator<Item = RawFd>) {
        self.polled.truncate(1);
        self.polled.extend(descriptors.into_iter().map(polled));
    }

    /// Waits until one can be read or has an error to tell, or until `due`, in µs of
    /// [`boot_time_us`]. It may end earlier: by a signal, or at the time that an earlier wait
    /// was to end.
    pub(crate) fn wait_until(&mut self, due: u64) -> io::Result<()> {
        let now = boot_time_us();
        let waits = due > now;
        if waits && !self.timer.is_set(due, now) {
            // A timer that went off can be read until it is set again.
            const BEHIND_TIMER: usize = 1;
            if self.poll(BEHIND_TIMER, false)? {
                return Ok(());
            }
            self.timer.set(due)?;
        }
        self.poll(0, waits)?;
        Ok(())
    }

    /// Looks which can be read, of all from the place `first` on. If none can and it `waits`, it does so
    /// until one can; true if one can.
    fn poll(&mut self, first: usize, waits: bool) -> io::Result<bool> {
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let limit = if waits {
            std::ptr::null()
        } else {
            std::ptr::from_ref(&at_once)
        };
        for polled in &mut self.polled {
            polled.revents = 0;
        }
        let polled = &mut self.polled[first..];
        // SAFETY: the descriptors and the time live through the call, their number
        // is that given, a null time sets no limit, and a null signal mask leaves the mask
        // as it is.
        #[allow(unsafe_code)]
        let outcome = unsafe {
            libc::ppoll(
                polled.as_mut_ptr(),
                polled.len() as libc::nfds_t,
                limit,
                std::ptr::null(),
            )
        };
        if outcome < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(outcome != 0)
    }

    /// True if descriptor `at` of the given ones was ready at the end of the last wait.
    pub(crate) fn is_ready(&self, at: usize) -> bool {
        self.polled[at + 1].revents != 0
    }
}

fn polled(fd: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

/// A descriptor that can be read from a time on. A wait with a time limit sets a timer and
/// takes it back each time, which costs some µs where the processor is virtual; one that was
/// set stays until its time has come, and none is set while there is something to read.
#[derive(Debug)]
struct Timer {
    descriptor: OwnedFd,
    /// When it goes off or went off, 0 before it was set.
    at: u64,
}

impl Timer {
    fn new() -> io::Result<Timer> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: the call takes no memory; its outcome is checked.
        #[allow(unsafe_code)]
        let descriptor = unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nobody else has it.
        #[allow(unsafe_code)]
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Timer { descriptor, at: 0 })
    }

    /// True if it goes off after `now` and at `due` at the latest.
    fn is_set(&self, due: u64, now: u64) -> bool {
        now < self.at && self.at <= due
    }

    /// Has it go off at `due`.
    fn set(&mut self, due: u64) -> io::Result<()> {
        let time = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: (due / 1_000_000) as libc::time_t,
                tv_nsec: (due % 1_000_000 * 1_000) as libc::c_long,
            },
        };
        // SAFETY: the time lives through the call, and a null pointer asks for no old one.
        #[allow(unsafe_code)]
        let outcome = unsafe {
            libc::timerfd_settime(
                self.descriptor.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const time,
                std::ptr::null_mut(),
            )
        };
        if outcome < 0 {
            return Err(io::Error::last_os_error());
        }
        self.at = due;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// Waits until `due`, however often it is woken; gives how often.
    fn wait(readable: &mut Readable, due: u64) -> u32 {
        let mut waits = 0;
        while boot_time_us() < due {
            readable.wait_until(due).unwrap();
            waits += 1;
        }
        waits
    }

    #[test]
    fn a_wait_ends_at_its_time_and_so_does_the_next() {
        let mut readable = Readable::new([]).unwrap();
        for _ in 0..3 {
            let due = boot_time_us() + 20_000;
            assert!(wait(&mut readable, due) <= 1);
        }
        // It is past, but goes off no more than once.
        let due = boot_time_us() + 20_000;
        readable.timer.set(due - 10_000).unwrap();
        assert!(wait(&mut readable, due) <= 2);
        // One that went off can be read, and does not end the next wait.
        let due = boot_time_us() + 20_000;
        assert_eq!(wait(&mut readable, due), 1);
    }

    #[test]
    fn an_earlier_time_takes_the_place_of_a_later_one() {
        let mut readable = Readable::new([]).unwrap();
        let (sooner, later) = (boot_time_us() + 20_000, boot_time_us() + 20_000_000);
        readable.timer.set(later).unwrap();
        wait(&mut readable, sooner);
        assert!(boot_time_us() < later);
    }

    #[test]
    fn a_time_past_waits_for_nothing() {
        let mut readable = Readable::new([]).unwrap();
        readable.wait_until(0).unwrap();
        assert_eq!(readable.timer.at, 0);
    }

    #[test]
    fn descriptors_are_told_apart_and_replaced() {
        let sockets = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let descriptors = || sockets.iter().map(AsRawFd::as_raw_fd);
        let mut readable = Readable::new(descriptors()).unwrap();
        let to = sockets[1].local_addr().unwrap();
        sockets[0].send_to(&[0], to).unwrap();
        let soon = boot_time_us() + 60_000_000;
        readable.wait_until(soon).unwrap();
        assert_eq!([0, 1].map(|at| readable.is_ready(at)), [false, true]);
        assert_eq!(readable.timer.at, 0, "none is set while one can be read");
        readable.replace(descriptors().rev());
        readable.wait_until(soon).unwrap();
        assert_eq!([0, 1].map(|at| readable.is_ready(at)), [true, false]);
    }
}
