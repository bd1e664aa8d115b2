//! Work from other threads, done by a server's own thread between two turns of its loop.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

/// Maximum number of waiting calls; further callers block.
const WAITING: usize = 16;

/// Work for a server's thread.
pub type Posted<S> = Box<dyn FnOnce(&mut S) + Send>;

type Call<S> = Posted<S>;

/// A handle by which other threads reach a server `S` that runs.
pub struct Remote<S> {
    calls: SyncSender<Call<S>>,
    wake: UnixStream,
}

/// The server's end of a [`Remote`].
pub struct RemoteCalls<S> {
    calls: Receiver<Call<S>>,
    woken: UnixStream,
}

/// A handle and the server's end of it.
///
/// # Errors
///
/// Returns an error if the system has no sockets left.
pub fn remote<S>() -> io::Result<(Remote<S>, RemoteCalls<S>)> {
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

impl<S: 'static> Remote<S> {
    /// Lets the server's thread do `work` between two turns, and gives its result. It must
    /// be short: the server does nothing else meanwhile. `None` if the server has stopped.
    pub fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Option<T> {
        let (call, done) = package(work);
        self.calls.send(call).ok()?;
        self.wake();
        done.recv().ok()
    }

    /// Like [`call`](Self::call), but waits no longer than `patience`; the work may be
    /// done all the same.
    pub fn call_within<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Option<T> {
        let (call, done) = package(work);
        self.calls.try_send(call).ok()?;
        self.wake();
        done.recv_timeout(patience).ok()
    }

    /// Lets the server's thread do `work` between two turns, without waiting for it; the work is
    /// dropped if the server has stopped.
    ///
    /// # Errors
    ///
    /// The work, if as many calls wait as may.
    pub fn post(&self, work: Posted<S>) -> Result<(), Posted<S>> {
        match self.calls.try_send(work) {
            Ok(()) => self.wake(),
            Err(mpsc::TrySendError::Full(work)) => return Err(work),
            Err(mpsc::TrySendError::Disconnected(_)) => {}
        }
        Ok(())
    }

    fn wake(&self) {
        // A full socket is readable all the same.
        let _ = (&self.wake).write(&[1]);
    }
}

fn package<S, T: Send + 'static>(
    work: impl FnOnce(&mut S) -> T + Send + 'static,
) -> (Call<S>, Receiver<T>) {
    let (answer, done) = mpsc::sync_channel(1);
    let call: Call<S> = Box::new(move |server| {
        // The caller waits for it, or has gone.
        let _ = answer.send(work(server));
    });
    (call, done)
}

impl<S> RemoteCalls<S> {
    /// Readable when calls wait.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.woken.as_raw_fd()
    }

    /// The next call that waits.
    pub fn poll(&mut self) -> Option<Call<S>> {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(count) if count > 0) {}
        self.calls.try_recv().ok()
    }
}
