//! Calls with wrong arguments, and where nobody answers, as C makes them.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};
use core::ptr::{null, null_mut};
use stateplane_multicast_c::receiver::{
    ReceiverHandle, stateplane_multicast_receiver_close, stateplane_multicast_receiver_next,
    stateplane_multicast_receiver_open, stateplane_multicast_receiver_queued,
};
use stateplane_multicast_c::sender::{
    SenderHandle, stateplane_multicast_sender_close, stateplane_multicast_sender_open,
    stateplane_multicast_sender_send, stateplane_multicast_sender_step,
};
use stateplane_multicast_c::{
    Code, StateplaneMulticastOptions, stateplane_multicast_error, stateplane_multicast_refusal,
    stateplane_multicast_text,
};

fn options(controllers: &'static CStr) -> StateplaneMulticastOptions {
    StateplaneMulticastOptions {
        size: size_of::<StateplaneMulticastOptions>(),
        controllers: controllers.as_ptr(),
        address: null(),
        keys: null(),
        timeout_us: 50_000,
        lanes: 0,
        queue: 0,
    }
}

fn text(pointer: *const c_char) -> String {
    // SAFETY: the library gives texts that last.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().expect("UTF-8").to_owned()
}

/// Code and details of opening a sender, which must not work.
fn refused(options: *const StateplaneMulticastOptions) -> (Option<Code>, String) {
    let mut sender: *mut SenderHandle = core::ptr::dangling_mut();
    // SAFETY: the options are null or there, and the place is there.
    let code = unsafe { stateplane_multicast_sender_open(options, &raw mut sender) };
    assert!(sender.is_null());
    (Code::of(code), text(stateplane_multicast_error()))
}

#[test]
fn wrong_options_are_told() {
    let wrong = |options: StateplaneMulticastOptions| refused(&raw const options);
    let good = options(c"127.0.0.1");
    let cases = [
        (refused(null()), "options is null"),
        (
            wrong(StateplaneMulticastOptions { size: 8, ..good }),
            "options.size is 8",
        ),
        (
            wrong(StateplaneMulticastOptions {
                controllers: null(),
                ..good
            }),
            "options.controllers is null",
        ),
        (
            wrong(options(c"127.0.0.1,there")),
            "\"there\" is no address",
        ),
        (wrong(options(c"")), "\"\" is no address"),
        (wrong(options(c"\xff")), "options.controllers is not UTF-8"),
        (
            wrong(StateplaneMulticastOptions { lanes: 256, ..good }),
            "at most 255",
        ),
        (
            wrong(StateplaneMulticastOptions {
                address: c"::1".as_ptr(),
                ..good
            }),
            "\"::1\" is no IPv4 address",
        ),
    ];
    for ((code, said), expected) in cases {
        assert_eq!(code, Some(Code::Argument), "{said}");
        assert!(said.contains(expected), "{said}: {expected}");
    }
    let keys = StateplaneMulticastOptions {
        keys: c"/nowhere/keys.toml".as_ptr(),
        ..good
    };
    let (code, said) = wrong(keys);
    assert_eq!(code, Some(Code::Keys));
    assert!(said.contains("/nowhere/keys.toml"), "{said}");
}

#[test]
fn silence_and_addresses_of_others_are_told() {
    let nobody = options(c"127.0.0.1:9");
    let (code, said) = refused(&raw const nobody);
    assert_eq!(
        (code, said.as_str()),
        (Some(Code::Silent), "no controller answers")
    );

    let elsewhere = StateplaneMulticastOptions {
        address: c"192.0.2.1".as_ptr(),
        ..options(c"127.0.0.1:9")
    };
    let mut receiver: *mut ReceiverHandle = core::ptr::dangling_mut();
    // SAFETY: the options and the place are there.
    let code =
        unsafe { stateplane_multicast_receiver_open(&raw const elsewhere, 0, &raw mut receiver) };
    assert_eq!(Code::of(code), Some(Code::System));
    assert!(receiver.is_null());
}

#[test]
fn null_handles_and_places_are_told() {
    let options = options(c"127.0.0.1");
    // SAFETY: null is refused.
    let codes = unsafe {
        [
            stateplane_multicast_sender_open(&raw const options, null_mut()),
            stateplane_multicast_sender_send(null_mut(), 1, null(), 0, null_mut()),
            stateplane_multicast_sender_step(null_mut(), 0, null_mut()),
            stateplane_multicast_receiver_next(null_mut(), 0, null_mut()),
            stateplane_multicast_receiver_queued(null_mut(), null_mut()),
        ]
    };
    assert_eq!(codes.map(Code::of), [Some(Code::Argument); 5]);
    // SAFETY: null is passed over.
    unsafe {
        stateplane_multicast_sender_close(null_mut(), 0);
        stateplane_multicast_receiver_close(null_mut(), 0);
    }
}

#[test]
fn every_code_has_its_own_text() {
    let mut texts: Vec<String> = Code::ALL
        .iter()
        .map(|code| text(stateplane_multicast_text(*code as i32)))
        .collect();
    texts.push(text(stateplane_multicast_text(-1)));
    texts.extend((0..=10).map(|refusal| text(stateplane_multicast_refusal(refusal))));
    let count = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), count);
}
