//! Arguments behind raw pointers.

use crate::code::Code;
use crate::error::Failure;
use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;

fn null(name: &str) -> Failure {
    Failure::new(Code::Argument, format!("{name} is null"))
}

/// The text at `pointer`, if it is not null.
///
/// # Safety
///
/// `pointer` is null, or leads to a text that ends with a null byte and lasts for `'a`.
pub(crate) unsafe fn text<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(pointer) };
    let text = text.to_str();
    text.map(Some)
        .map_err(|_| Failure::new(Code::Argument, format!("{name} is not UTF-8")))
}

/// The `length` bytes at `pointer`.
///
/// # Safety
///
/// `pointer` leads to so many bytes that last for `'a`, or is null.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const u8,
    length: usize,
    name: &str,
) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    if isize::try_from(length).is_err() {
        let text = format!("{name} is longer than the memory");
        return Err(Failure::new(Code::Argument, text));
    }
    // SAFETY: the caller says so; the length was looked at above.
    Ok(unsafe { core::slice::from_raw_parts(pointer, length) })
}

/// The place at `pointer`, to which an answer goes.
///
/// # Safety
///
/// `pointer` is null, or leads to an aligned place for a `T` that nobody else uses for `'a`.
pub(crate) unsafe fn place<'a, T>(
    pointer: *mut T,
    name: &str,
) -> Result<&'a mut MaybeUninit<T>, Failure> {
    // SAFETY: the caller says so; what is there may be without a value.
    unsafe { pointer.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| null(name))
}
