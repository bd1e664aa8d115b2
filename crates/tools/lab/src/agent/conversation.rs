//! Exchange of messages over a connection, without sockets.
//!
//! The client begins with a hello of 16 bytes: `SPLAB 1\n` and the connection's
//! number. Then the ends take turns. Message *k* of an end carries the number *k*, a
//! question of its own (pseudo-random bytes that follow from the connection's number,
//! the direction and *k*) and the answer to the question that it received last. So
//! each end knows every byte that it must receive, and an answer can only be right if
//! the question arrived whole.

const HELLO_MAGIC: [u8; 8] = *b"SPLAB 1\n";

/// Length of the hello in bytes.
pub(super) const HELLO: usize = 16;

const HEADER: usize = 8;

/// End of the connection that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

/// State of one end of a conversation.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    connection: u64,
    end: End,
    /// Number of the next message to send.
    sends: u32,
    /// Number of the next message to receive.
    receives: u32,
    /// The question received last, as it came.
    received: Vec<u8>,
}

/// The first bytes of a connection.
pub(super) fn hello(connection: u64) -> [u8; HELLO] {
    let mut bytes = [0; HELLO];
    bytes[..8].copy_from_slice(&HELLO_MAGIC);
    bytes[8..].copy_from_slice(&connection.to_be_bytes());
    bytes
}

/// The connection's number in a hello, and how many bytes of its magic are wrong.
pub(super) fn read_hello(bytes: [u8; HELLO]) -> (u64, u64) {
    let (magic, number) = bytes.split_at(8);
    let mut connection = [0; 8];
    connection.copy_from_slice(number);
    (
        u64::from_be_bytes(connection),
        differences(magic, &HELLO_MAGIC),
    )
}

impl Conversation {
    pub(super) fn new(connection: u64, end: End) -> Self {
        Self {
            connection,
            end,
            sends: 0,
            receives: 0,
            received: Vec::new(),
        }
    }

    /// The next message to send.
    pub(super) fn message(&mut self) -> Vec<u8> {
        let question = question(self.connection, self.end, self.sends);
        let answer = answer(&self.received, self.connection);
        let message = assemble(self.sends, &question, &answer);
        self.sends = self.sends.wrapping_add(1);
        message
    }

    /// The next message that must come.
    fn expected(&self) -> Vec<u8> {
        let peer = match self.end {
            End::Client => End::Server,
            End::Server => End::Client,
        };
        let theirs = question(self.connection, peer, self.receives);
        // The client speaks first, so its first message answers nothing.
        let answered = match self.sends.checked_sub(1) {
            Some(last) => answer(&question(self.connection, self.end, last), self.connection),
            None => Vec::new(),
        };
        assemble(self.receives, &theirs, &answered)
    }

    /// Length of the next message that must come, in bytes.
    pub(super) fn expected_length(&self) -> usize {
        self.expected().len()
    }

    /// Takes a message of [`expected_length`](Self::expected_length) bytes; gives the
    /// number of bytes that are not as they must be.
    pub(super) fn accept(&mut self, message: &[u8]) -> u64 {
        let expected = self.expected();
        let length = question_length(&expected);
        self.received.clear();
        self.received
            .extend(message.iter().skip(HEADER).take(length));
        self.receives = self.receives.wrapping_add(1);
        differences(message, &expected)
    }
}

fn assemble(number: u32, question: &[u8], answer: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + question.len() + answer.len());
    message.extend(number.to_be_bytes());
    message.extend((question.len() as u16).to_be_bytes());
    message.extend((answer.len() as u16).to_be_bytes());
    message.extend(question);
    message.extend(answer);
    message
}

fn question_length(message: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([message[4], message[5]]))
}

/// 64 to 319 bytes.
fn question(connection: u64, end: End, number: u32) -> Vec<u8> {
    let direction = u64::from(end == End::Server);
    let mut seed = connection
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(u64::from(number) << 1 | direction);
    let length = 64 + (next(&mut seed) & 0xff) as usize;
    std::iter::repeat_with(|| next(&mut seed).to_be_bytes())
        .flatten()
        .take(length)
        .collect()
}

/// As long as the question; each byte depends on the question's byte and all before.
fn answer(question: &[u8], connection: u64) -> Vec<u8> {
    let mut carried = connection as u8;
    question
        .iter()
        .map(|byte| {
            carried = carried.rotate_left(3).wrapping_add(*byte) ^ 0x5a;
            carried
        })
        .collect()
}

fn differences(a: &[u8], b: &[u8]) -> u64 {
    let common = a.iter().zip(b).filter(|(a, b)| a != b).count();
    (common + a.len().abs_diff(b.len())) as u64
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exchange(client: &mut Conversation, server: &mut Conversation, flip: Option<usize>) -> u64 {
        let mut wrong = 0;
        for turn in 0..2 {
            let (from, to) = if turn == 0 {
                (&mut *client, &mut *server)
            } else {
                (&mut *server, &mut *client)
            };
            let mut message = from.message();
            assert_eq!(message.len(), to.expected_length());
            if let (Some(at), 0) = (flip, turn) {
                let at = at % message.len();
                message[at] ^= 1;
            }
            wrong += to.accept(&message);
        }
        wrong
    }

    proptest! {
        #[test]
        fn both_ends_agree_and_any_flipped_bit_is_seen(connection: u64, flip: usize) {
            let mut client = Conversation::new(connection, End::Client);
            let mut server = Conversation::new(connection, End::Server);
            for _ in 0..5 {
                prop_assert_eq!(exchange(&mut client, &mut server, None), 0);
            }
            prop_assert!(exchange(&mut client, &mut server, Some(flip)) > 0);
        }

        #[test]
        fn a_repeated_message_is_seen(connection: u64) {
            let mut client = Conversation::new(connection, End::Client);
            let mut server = Conversation::new(connection, End::Server);
            let first = client.message();
            server.accept(&first);
            let _ = server.message();
            prop_assert!(server.accept(&first) > 0);
        }

        #[test]
        fn any_bytes_are_taken(connection: u64, bytes: Vec<u8>) {
            let mut server = Conversation::new(connection, End::Server);
            let _ = server.accept(&bytes);
            let _ = server.message();
        }
    }

    #[test]
    fn a_hello_reads_back() {
        assert_eq!(read_hello(hello(77)), (77, 0));
        let mut wrong = hello(77);
        wrong[0] ^= 1;
        assert_eq!(read_hello(wrong).1, 1);
    }
}
