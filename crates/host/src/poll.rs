//! Waiting for descriptors.

use std::io;
use std::os::fd::RawFd;

/// A set of descriptors to read from.
#[derive(Debug)]
pub(crate) struct Readable {
    polled: Vec<libc::pollfd>,
}

impl Readable {
    /// The set of `descriptors`, which must stay open as long as it is used.
    pub(crate) fn new(descriptors: impl IntoIterator<Item = RawFd>) -> Readable {
        let polled = descriptors
            .into_iter()
            .map(|fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        Readable { polled }
    }

    /// Waits until one can be read or has an error to tell, at most `wait_us` if that is
    /// given; a signal ends the waiting too.
    #[allow(unsafe_code)]
    pub(crate) fn wait(&mut self, wait_us: Option<u64>) -> io::Result<()> {
        for polled in &mut self.polled {
            polled.revents = 0;
        }
        let timeout = wait_us.map(|wait_us| libc::timespec {
            tv_sec: (wait_us / 1_000_000) as libc::time_t,
            tv_nsec: (wait_us % 1_000_000 * 1_000) as libc::c_long,
        });
        // SAFETY: the descriptors and the time live through the call, their number
        // is that given, a null time sets no limit, and a null signal mask leaves the mask
        // as it is.
        let outcome = unsafe {
            libc::ppoll(
                self.polled.as_mut_ptr(),
                self.polled.len() as libc::nfds_t,
                timeout
                    .as_ref()
                    .map_or(std::ptr::null(), std::ptr::from_ref),
                std::ptr::null(),
            )
        };
        if outcome < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether descriptor `at` was ready at the end of the last wait.
    pub(crate) fn is_ready(&self, at: usize) -> bool {
        self.polled[at].revents != 0
    }
}
