//! Random bits from the system.

use stateplane_runtime::TargetState;
use std::io;

/// 64 bits that an earlier start of the process most likely did not draw.
///
/// # Errors
///
/// Returns the error of the operating system if it gives no random bits.
#[allow(unsafe_code)]
pub fn random_bits() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: `bytes` is as long as stated. Up to 256 bytes come whole.
    let outcome = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// Fills the registers that a program annotates `@drawn_at_start`.
///
/// # Errors
///
/// Returns the error of the operating system if it gives no random bits.
pub fn draw_registers(state: &mut TargetState) -> io::Result<()> {
    let mut failure = None;
    state.draw(&mut || {
        random_bits().unwrap_or_else(|error| {
            failure = Some(error);
            0
        })
    });
    failure.map_or(Ok(()), Err)
}
