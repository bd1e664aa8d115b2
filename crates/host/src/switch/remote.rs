//! Work from other threads, done between two bursts of packets.

use super::SwitchServer;
use stateplane_target::Engine;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, SyncSender};

/// Calls that may wait; whoever comes then waits to be let in.
const WAITING: usize = 16;

type Call<E> = Box<dyn FnOnce(&mut SwitchServer<E>) + Send>;

/// A handle by which other threads reach a server that runs.
pub struct Remote<E: Engine> {
    calls: SyncSender<Call<E>>,
    wake: UnixStream,
}

/// The server's end of a [`Remote`].
pub struct RemoteCalls<E: Engine> {
    calls: Receiver<Call<E>>,
    woken: UnixStream,
}

/// A handle and the server's end of it.
///
/// # Errors
///
/// If the system has no sockets left.
pub fn remote<E: Engine>() -> io::Result<(Remote<E>, RemoteCalls<E>)> {
    let (sender, receiver) = mpsc::sync_channel(WAITING);
    let (woken, wake) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    wake.set_nonblocking(true)?;
    let calls = RemoteCalls {
        calls: receiver,
        woken,
    };
    let remote = Remote {
        calls: sender,
        wake,
    };
    Ok((remote, calls))
}

impl<E: Engine> Remote<E> {
    /// Lets the server's thread do `work` between two bursts, and gives its result. It must
    /// be short: no packet is taken meanwhile. `None` if the server has stopped.
    pub fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SwitchServer<E>) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, done) = mpsc::sync_channel(1);
        let call: Call<E> = Box::new(move |server| {
            // Whoever asked waits for it.
            let _ = answer.send(work(server));
        });
        self.calls.send(call).ok()?;
        // A full socket is readable all the same.
        let _ = (&self.wake).write(&[1]);
        done.recv().ok()
    }
}

impl<E: Engine> RemoteCalls<E> {
    /// Readable when calls wait.
    pub(super) fn descriptor(&self) -> RawFd {
        self.woken.as_raw_fd()
    }

    /// The next call that waits.
    pub(super) fn poll(&mut self) -> Option<Call<E>> {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(count) if count > 0) {}
        self.calls.try_recv().ok()
    }
}
