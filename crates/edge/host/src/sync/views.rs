//! Views of an engine for threads of its own process.

use std::cell::Cell;
use std::sync::Arc;

use stateplane_sync::Told;

use super::lent::Lent;
use super::{ReadRequest, Reading, SyncServer, ViewError};

/// A handle by which threads of the engine's process look at its views, without a copy and without
/// the engine's thread.
#[derive(Clone)]
pub struct LocalViews(Arc<Lent<Box<SyncServer>>>);

impl LocalViews {
    pub(super) fn new() -> LocalViews {
        LocalViews(Arc::new(Lent::new()))
    }

    /// Lets `look` see the view of a group as it is at this moment, values by location; `None` while
    /// the view is incomplete.
    ///
    /// The caller's thread looks at once while the engine waits for something to do. Otherwise it
    /// waits until the engine has done what it is at; before the engine runs, until it does. The engine
    /// does nothing while `look` runs, which must be short and ask the engine nothing, and goes on if
    /// `look` panics.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownGroup`]; [`ViewError::Standby`]; [`ViewError::Stopped`];
    /// [`ViewError::Nested`] in the thread of an engine, where a [`Reply`](super::Reply) and the work
    /// of a [`Remote`](crate::remote::Remote) run, and within another look.
    pub fn look<T>(
        &self,
        group: &str,
        look: impl FnOnce(&Told, &[u64]) -> T,
    ) -> Result<Option<T>, ViewError> {
        let _busy = Busy::begin().ok_or(ViewError::Nested)?;
        let looked = self.0.look(|server| server.look(group, look));
        looked.unwrap_or(Err(ViewError::Stopped))
    }

    /// The view for which `request` asks, if it meets the request and can be had without waiting. If
    /// not, `None`: the engine is to be asked, which answers or refuses ([`SyncServer::read`]).
    ///
    /// Unlike a request it neither wakes the engine's thread nor takes its time.
    pub fn read_at_once(&self, request: &ReadRequest) -> Option<Reading> {
        self.0.try_with(|server| server.read_at_once(request))?
    }

    /// Lets threads look at the views of `server` while `meanwhile` runs.
    pub(super) fn lend<R>(
        &self,
        server: Box<SyncServer>,
        meanwhile: impl FnOnce() -> R,
    ) -> (Box<SyncServer>, R) {
        self.0.lend(server, meanwhile)
    }

    /// The engine has stopped.
    pub(super) fn end(&self) {
        self.0.end();
    }
}

thread_local! {
    /// This thread runs an engine or looks at a view.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// A thread that runs an engine, or looks at a view. It may not look at another: engines that waited
/// for each other's threads would wait for ever.
pub(super) struct Busy(());

impl Busy {
    /// `None` if the thread does so already.
    pub(super) fn begin() -> Option<Busy> {
        let was_busy = IS_BUSY.replace(true);
        (!was_busy).then(|| Busy(()))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        IS_BUSY.set(false);
    }
}
