//! The words of a command line.

use core::net::SocketAddrV4;
use core::str::FromStr;

use stateplane_wire::replication::Key;

/// A command: a verb, plain words, and `name=value` settings.
pub struct Command<'a> {
    line: &'a str,
    words: Vec<&'a str>,
    settings: Vec<(&'a str, &'a str)>,
}

impl<'a> Command<'a> {
    pub fn new(line: &'a str) -> Command<'a> {
        let mut words = Vec::new();
        let mut settings = Vec::new();
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some(setting) => settings.push(setting),
                None => words.push(word),
            }
        }
        Command {
            line,
            words,
            settings,
        }
    }

    /// The plain words, the verb first.
    pub fn words(&self) -> &[&'a str] {
        &self.words
    }

    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        let found = self.settings.iter().find(|(n, _)| *n == name);
        found.map(|(_, value)| *value)
    }

    pub fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).map(|value| self.parse(value))
    }

    /// The number in a word such as `s1` or `r0`.
    pub fn numbered(&self, at: usize, letter: char) -> u8 {
        let number = self.words.get(at).and_then(|w| w.strip_prefix(letter));
        self.parse(number.unwrap_or_else(|| panic!("{}: no {letter}<number>", self.line)))
    }

    pub fn micros(&self, text: &str) -> u64 {
        for (unit, factor) in [("us", 1), ("ms", 1_000), ("s", 1_000_000)] {
            if let Some(number) = text.strip_suffix(unit) {
                return self.parse::<u64>(number) * factor;
            }
        }
        panic!("{}: {text} is not a time", self.line)
    }

    pub fn hex(&self, name: &str) -> Vec<u8> {
        let text = self.text(name).unwrap_or("").as_bytes();
        let pairs = text.chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// A link such as `0->1`.
    pub fn link(&self) -> (u8, u8) {
        let link = self.words.iter().find_map(|w| w.split_once("->"));
        let (from, to) = link.unwrap_or_else(|| panic!("{}: no link", self.line));
        (self.parse(from), self.parse(to))
    }

    /// A key: `counter/7`, `brief/7`, `staged/7`, `service/7`, `other/7`, `nat/tcp/10.0.0.1:1234` or
    /// `public/tcp/203.0.113.1:1024`, both perhaps with a remote endpoint behind `>`.
    pub fn key(&self) -> Key {
        let Some(text) = self.text("key") else {
            return Key::default();
        };
        let mut bytes = [0; 16];
        let (class, rest) = text.split_once('/').unwrap();
        bytes[0] = match class {
            "nat" => 1,
            "public" => 2,
            "counter" => 3,
            "brief" => 4,
            "staged" => 5,
            "service" => 6,
            _ => 99,
        };
        if let Some((protocol, endpoint)) = rest.split_once('/') {
            bytes[1] = match protocol {
                "tcp" => 6,
                _ => 17,
            };
            for (endpoint, place) in endpoint.split('>').zip(bytes[2..14].chunks_mut(6)) {
                let endpoint: SocketAddrV4 = self.parse(endpoint);
                place[..4].copy_from_slice(&endpoint.ip().octets());
                place[4..].copy_from_slice(&endpoint.port().to_be_bytes());
            }
        } else {
            if class == "service" {
                bytes[1] = 6;
                bytes[6..10].copy_from_slice(&super::world::SERVICE.ip().octets());
                bytes[12..14].copy_from_slice(&super::world::SERVICE.port().to_be_bytes());
            }
            bytes[15] = self.parse(rest);
        }
        Key(bytes)
    }

    pub fn parse<T: FromStr>(&self, text: &str) -> T {
        match text.parse() {
            Ok(value) => value,
            Err(_) => panic!("{}: {text}", self.line),
        }
    }
}
