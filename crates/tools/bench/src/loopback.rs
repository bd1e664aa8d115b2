//! Store servers as threads behind UDP sockets of the loopback interface, and a switch that
//! loads them.

#![allow(clippy::disallowed_types)]

mod client;
mod store;

pub use client::Client;
pub use stateplane_peers::ROUND;
pub use store::Store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Threads that end with it.
#[derive(Default)]
pub struct Threads {
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts `work`, which ends when what it is given is set.
    pub fn start(&mut self, work: impl FnOnce(&AtomicBool) + Send + 'static) {
        let stop = self.stop.clone();
        self.handles.push(std::thread::spawn(move || work(&stop)));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}
