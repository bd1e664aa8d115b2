//! Opaque handles, and the boundary that no panic crosses.

use crate::code::Code;
use crate::error::{Failure, told};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, TryLockError};

/// Something that a caller has a pointer to.
#[derive(Debug)]
pub struct Handle<T>(Mutex<T>);

impl<T> Handle<T> {
    pub(crate) fn new(of: T) -> Box<Handle<T>> {
        Box::new(Handle(Mutex::new(of)))
    }

    /// Its contents, unless a call failed half way.
    pub(crate) fn into_inner(self) -> Option<T> {
        self.0.into_inner().ok()
    }

    fn with(&self, work: impl FnOnce(&mut T) -> Result<Code, Failure>) -> Result<Code, Failure> {
        match self.0.try_lock() {
            Ok(mut of) => work(&mut of),
            Err(TryLockError::WouldBlock) => {
                Err(Failure::new(Code::Busy, "another thread uses the handle"))
            }
            Err(TryLockError::Poisoned(_)) => {
                let text = "a call with the handle failed within the library";
                Err(Failure::new(Code::Internal, text))
            }
        }
    }
}

/// Does the work of a call, and gives its code as a number. A panic ends here.
pub(crate) fn call(work: impl FnOnce() -> Result<Code, Failure>) -> i32 {
    // State that the work leaves half done is behind a lock that its panic poisons.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    match outcome {
        Ok(Ok(code)) => code as i32,
        Ok(Err(failure)) => told(failure),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            told(Failure::new(Code::Internal, text.unwrap_or("a panic")))
        }
    }
}

/// Does the work of a call with a handle.
///
/// # Safety
///
/// `handle` is null, or one that was opened and not closed.
pub(crate) unsafe fn call_with<T>(
    handle: *const Handle<T>,
    work: impl FnOnce(&mut T) -> Result<Code, Failure>,
) -> i32 {
    call(|| {
        // SAFETY: an open handle is a boxed value that nobody moves or frees before it is closed;
        // threads share it, and its lock keeps them apart.
        let handle = unsafe { handle.as_ref() };
        let handle = handle.ok_or_else(|| Failure::new(Code::Argument, "the handle is null"))?;
        handle.with(work)
    })
}

/// Takes a handle back, and does its last work.
///
/// # Safety
///
/// `handle` is null, or one that was opened and not closed, and no other thread uses it.
pub(crate) unsafe fn close<T>(handle: *mut Handle<T>, work: impl FnOnce(T)) {
    if handle.is_null() {
        return;
    }
    call(|| {
        // SAFETY: it came from `Box::into_raw`, and the caller gives it up.
        let handle = unsafe { Box::from_raw(handle) };
        if let Some(of) = handle.into_inner() {
            work(of);
        }
        Ok(Code::Ok)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::stateplane_multicast_error;
    use core::ffi::CStr;

    fn last() -> String {
        // SAFETY: the text of this thread lives until its next failure.
        let text = unsafe { CStr::from_ptr(stateplane_multicast_error()) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_is_a_code_and_the_handle_stays_closed_to_calls() {
        let handle = Handle::new(7u32);
        // SAFETY: the handle is open.
        let with = |work: fn(&mut u32) -> Result<Code, Failure>| unsafe {
            call_with(&raw const *handle, work)
        };
        assert_eq!(with(|_| Ok(Code::NoLane)), Code::NoLane as i32);
        assert_eq!(last(), "");
        assert_eq!(with(|of| panic!("broke\0n at {of}")), Code::Internal as i32);
        assert_eq!(last(), "broken at 7");
        assert_eq!(with(|_| Ok(Code::Ok)), Code::Internal as i32);
        assert!(handle.into_inner().is_none());
    }

    #[test]
    fn a_handle_in_use_is_busy_and_a_null_one_is_none() {
        let handle = Handle::new(());
        let pointer = &raw const *handle;
        // SAFETY: the handle is open.
        let code = unsafe {
            call_with(pointer, |()| {
                assert_eq!(call_with(pointer, |()| Ok(Code::Ok)), Code::Busy as i32);
                Ok(Code::Ok)
            })
        };
        assert_eq!(code, Code::Ok as i32);
        // SAFETY: null is told apart.
        let code = unsafe { call_with::<()>(core::ptr::null(), |()| Ok(Code::Ok)) };
        assert_eq!(code, Code::Argument as i32);
        assert_eq!(last(), "the handle is null");
    }
}
