//! Orderly stop.

use crate::exit::{CommandError, Failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that SIGINT, SIGTERM and SIGHUP set.
pub fn stop_flag() -> Result<Arc<AtomicBool>, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| CommandError::new(Failure::System, error))?;
    Ok(stop)
}
