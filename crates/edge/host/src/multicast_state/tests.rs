use std::sync::atomic::AtomicU64;

use super::*;
use crate::sealing::frames::guard;

/// Time for what takes milliseconds on an idle machine.
const WAIT: Duration = Duration::from_secs(30);

/// Loopback addresses that no other test has, by their last byte.
fn address(last: u8) -> SocketAddrV4 {
    let pid = std::process::id().to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(127, 110 + pid[2] % 40, pid[3], last), 4801)
}

fn state(time: u64, group: u8, bytes: &[u8]) -> State {
    State {
        place: FinalTime { time, group },
        bytes: bytes.to_vec(),
    }
}

/// Takes the bytes of states.
fn bytes(state: State) -> Option<Vec<u8>> {
    Some(state.bytes)
}

#[test]
fn a_state_is_found_in_its_bytes_and_in_no_others() {
    for content in [&b""[..], b"all of it"] {
        let given = state(1 << 40, 7, content);
        let bytes = given.to_vec();
        assert_eq!(State::parse(bytes.clone()), Some(given));
        assert_eq!(State::parse(bytes[..bytes.len() - 1].to_vec()), None);
        assert_eq!(State::parse([&bytes[..], &[0]].concat()), None);
        let mut other = bytes;
        other[0] = VERSION + 1;
        assert_eq!(State::parse(other), None);
    }
    assert_eq!(State::parse(Vec::new()), None);
}

/// Messages of one time in several groups are delivered together: a state may have some of them.
#[test]
fn a_state_covers_the_times_of_which_it_has_all() {
    assert!(state(7, u8::MAX, b"").covers(7));
    assert!(state(8, 0, b"").covers(7));
    assert!(!state(7, 3, b"").covers(7));
    assert!(!state(6, u8::MAX, b"").covers(7));
}

/// A peer that is not far enough, or has no state, or another program's, is asked again.
#[test]
fn a_peer_that_covers_the_place_gives_its_state() {
    let [joins, behind, ahead, nowhere] = [1, 2, 3, 4].map(address);
    let _behind = States::open(behind, None, || Some(state(4, u8::MAX, b"behind"))).unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&asked);
    let gives = move || match told.fetch_add(1, Ordering::Relaxed) {
        0 => None,
        1 => Some(state(9, 0, b"strange")),
        _ => Some(state(9, 0, b"ahead")),
    };
    let _ahead = States::open(ahead, None, gives).unwrap();
    let mut joining = States::open(joins, None, || None).unwrap();
    let take = |state: State| (state.bytes != b"strange").then_some(state);
    let joined = joining.join(vec![nowhere, behind, ahead], 5, take).unwrap();
    assert_eq!(joined.recv_timeout(WAIT), Ok(state(9, 0, b"ahead")));
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[test]
fn a_state_passes_sealed_to_peers_with_keys_alone() {
    let [gives, joins] = [5, 6].map(address);
    let shared = |guard| Some(Arc::new(Mutex::new(guard)));
    let keys = guard(1, 2, *joins.ip());
    let _giving = States::with(gives, shared(keys), || Some(state(9, 0, b"sealed"))).unwrap();
    // Without keys nothing comes.
    let mut open = States::open(joins, None, || None).unwrap();
    let nothing = open.join(vec![gives], 5, bytes).unwrap();
    assert!(nothing.recv_timeout(Duration::from_millis(300)).is_err());
    drop(open);
    let keys = guard(2, 1, *gives.ip());
    let mut joining = States::with(joins, shared(keys), || None).unwrap();
    let joined = joining.join(vec![gives], 5, bytes).unwrap();
    assert_eq!(joined.recv_timeout(WAIT), Ok(b"sealed".to_vec()));
}

#[test]
fn a_program_that_ends_waits_for_no_state() {
    let [own, nowhere] = [7, 8].map(address);
    let mut states = States::open(own, None, || None).unwrap();
    let joined = states.join(vec![nowhere], 5, bytes).unwrap();
    drop(states);
    assert!(joined.recv().is_err());
}
