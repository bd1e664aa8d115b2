//! Failures, and the text of a thread's last one.

use crate::code::Code;
use core::cell::RefCell;
use core::ffi::c_char;
use core::fmt::Display;
use std::ffi::CString;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// A call that did not do what it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Display) -> Failure {
        let text = text.to_string();
        Failure { code, text }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::new(Code::System, error)
    }
}

/// Keeps the text of a failure for [`stateplane_multicast_error`], and gives its number.
pub(crate) fn told(failure: Failure) -> i32 {
    let mut text = failure.text.into_bytes();
    text.retain(|byte| *byte != 0);
    let text = CString::new(text).unwrap_or_default();
    // A thread that ends has no last failure.
    let _ = LAST.try_with(|last| last.replace(text));
    failure.code as i32
}

/// Details of the calling thread's last call that failed: UTF-8, valid until its next one that
/// fails; empty if none did.
#[unsafe(no_mangle)]
pub extern "C" fn stateplane_multicast_error() -> *const c_char {
    let last = LAST.try_with(|last| last.borrow().as_ptr());
    last.unwrap_or(c"".as_ptr())
}
