//! Random bits from the system.

use std::io;

/// 64 bits that an earlier start of the process most likely did not draw.
///
/// # Errors
///
/// What the system says if it gives none.
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
