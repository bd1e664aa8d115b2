//! SIGINT and SIGTERM as a question that loops ask, so that guards run.

use crate::error::LabError;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static INSTALLED: Once = Once::new();

/// Turns SIGINT, SIGTERM and SIGHUP of this process into [`requested`]. If another
/// handler is installed already, that one stays.
pub fn install() {
    INSTALLED.call_once(|| {
        let _ = ctrlc::set_handler(|| REQUESTED.store(true, Ordering::Relaxed));
    });
}

/// True if the user asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

pub(crate) fn check() -> Result<(), LabError> {
    if requested() {
        return Err(LabError::Interrupted);
    }
    Ok(())
}

/// Waits until `until`.
///
/// # Errors
/// `LAB130` as soon as the user asks to stop.
pub fn wait_until(until: Instant) -> Result<(), LabError> {
    loop {
        check()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}
