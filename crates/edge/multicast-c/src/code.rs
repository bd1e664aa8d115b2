//! Outcomes of calls, with their texts.

use core::ffi::{CStr, c_char};
use stateplane_wire::multicast;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Outcome of a call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// Its meaning, in words.
            pub fn text(self) -> &'static CStr {
                match self {
                    $(Code::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// It is done.
    Ok = 0, c"it is done";
    /// Nothing came in the time given.
    Nothing = 1, c"nothing came in the time given";
    /// The session's lanes are taken.
    NoLane = 2, c"each of the session's lanes for these groups carries a message: step, then send again";
    /// The receiver is off the list.
    TakenOff = 3, c"there are no more messages";
    /// An argument is wrong.
    Argument = 4, c"an argument is wrong";
    /// The payload is too long.
    TooLong = 5, c"the payload is too long";
    /// There is no such group.
    NoGroup = 6, c"the deployment has no such group";
    /// No controller or leader answers.
    Silent = 7, c"no controller or no leader answers";
    /// All places are taken.
    Full = 8, c"too many senders or receivers: no session, lane or place on the list is free";
    /// A file of keys is wrong.
    Keys = 9, c"the file of keys cannot be used";
    /// The system refuses.
    System = 10, c"the system refuses";
    /// Another thread uses the handle.
    Busy = 11, c"another thread uses the handle";
    /// The library failed.
    Internal = 12, c"the library failed; the handle cannot be used any more";
}

impl Code {
    /// The code of that number.
    pub fn of(number: i32) -> Option<Code> {
        let mut all = Code::ALL.iter().copied();
        all.find(|code| *code as i32 == number)
    }
}

/// Meaning of a code, in words; also for numbers that are no codes.
#[unsafe(no_mangle)]
pub extern "C" fn stateplane_multicast_text(code: i32) -> *const c_char {
    let text = Code::of(code).map_or(c"there is no such code", Code::text);
    text.as_ptr()
}

/// Why switches refused a message, by the number in [`crate::SenderEvent::refusal`].
#[unsafe(no_mangle)]
pub extern "C" fn stateplane_multicast_refusal(code: u32) -> *const c_char {
    let known = u8::try_from(code).ok().and_then(multicast::Code::from_u8);
    let text = match known {
        Some(code) => refusal(code),
        None => c"there is no such refusal",
    };
    text.as_ptr()
}

/// Meaning of a refusal, in words.
fn refusal(code: multicast::Code) -> &'static CStr {
    match code {
        multicast::Code::NotLeader => c"the switch does not lead the group",
        multicast::Code::UnknownGroup => c"the switch has no such group",
        multicast::Code::UnknownSession => c"the session is over",
        multicast::Code::UnknownLane => c"the session was not granted the lane",
        multicast::Code::TooLong => c"the payload is longer than the group takes",
        multicast::Code::Full => c"the group's window is full",
        multicast::Code::NotAddressed => c"the message does not address the group",
        multicast::Code::Jump => c"the host's clock is too far ahead of the group's",
        multicast::Code::OtherIncarnation => c"the message is for another start of the switch",
        multicast::Code::Fenced => c"the message is of an epoch that is over",
    }
}
