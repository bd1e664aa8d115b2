use proptest::prelude::*;

use super::*;

fn setting() -> impl Strategy<Value = Setting> {
    let name = proptest::sample::select(SettingName::ALL);
    let line = proptest::option::of(1..u32::MAX);
    (name, any::<(u16, Option<u32>)>(), line).prop_map(|(name, (index, value), line)| Setting {
        name,
        index,
        value,
        line,
    })
}

fn greeting() -> impl Strategy<Value = Greeting> {
    let settings = proptest::collection::vec(setting(), 0..=MOST_SETTINGS);
    (
        any::<(bool, u32, u32, u32)>(),
        1u32..,
        settings,
        "\\PC{0,50}",
    )
        .prop_map(
            |((answers, number, switch_id, address), incarnation, settings, file)| Greeting {
                answers,
                number,
                switch_id,
                incarnation,
                address: address.into(),
                settings,
                file,
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_is_read(greeting in greeting()) {
        prop_assert_eq!(Greeting::parse(&greeting.to_vec()), Ok(greeting));
    }

    #[test]
    fn every_prefix_is_refused(greeting in greeting()) {
        let bytes = greeting.to_vec();
        for length in 0..bytes.len() {
            prop_assert!(Greeting::parse(&bytes[..length]).is_err(), "{}", length);
        }
        prop_assert!(Greeting::parse(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let _ = Greeting::parse(&[&MAGIC[..], &bytes].concat());
    }
}

#[test]
fn lists_and_names_that_are_too_long_are_cut() {
    let one = Setting {
        name: SettingName::Shards,
        index: 0,
        value: Some(4),
        line: None,
    };
    let greeting = Greeting {
        answers: false,
        number: 1,
        switch_id: 1,
        incarnation: 1,
        address: Ipv4Addr::LOCALHOST,
        settings: vec![one; MOST_SETTINGS + 1],
        file: format!("{}end", "ä".repeat(LONGEST_NAME)),
    };
    let read = Greeting::parse(&greeting.to_vec()).unwrap();
    assert_eq!(read.settings.len(), MOST_SETTINGS);
    assert!(read.file.len() <= LONGEST_NAME && read.file.ends_with("ääend"));
}

#[test]
fn what_has_no_meaning_is_refused() {
    let greeting = Greeting {
        answers: true,
        number: 1,
        switch_id: 1,
        incarnation: 1,
        address: Ipv4Addr::LOCALHOST,
        settings: Vec::new(),
        file: String::new(),
    };
    let bytes = greeting.to_vec();
    for (at, value) in [(0, 1), (4, 0), (4, 3), (5, 65), (6, 201), (7, 1), (19, 0)] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        assert!(Greeting::parse(&bytes).is_err(), "byte {at} is {value}");
    }
}
