use stateplane_store::Setup;

use super::*;

const FILE: &str = r#"
listen = "10.0.0.11"
[replication]
chain = ["10.0.0.11", "10.0.0.12"]
chain_epoch = 3
shards = 2
[[replication.class]]
id = 1
state_length = 8
first_lease = "zero"
"#;

fn greeter() -> (Greeter, Server) {
    let deployment = Deployment::parse("store.toml".as_ref(), FILE).unwrap();
    let file = deployment.replication().unwrap();
    let link = |host| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 4794);
    let setup = Setup::Fixed {
        config: deployment.replica_config().unwrap(),
        incarnation: 1,
        links: vec![link(11), link(12)],
    };
    let server = setup.server(0).unwrap();
    let address = Ipv4Addr::new(10, 0, 0, 11);
    (Greeter::new(&deployment, file, address), server)
}

fn setting(name: SettingName, index: u16, value: u32) -> Setting {
    Setting {
        name,
        index,
        value: Some(value),
        line: None,
    }
}

/// A greeting of switch 1 with these settings beside its address and start.
fn greeting(host: u8, incarnation: u32, settings: &[Setting]) -> Greeting {
    let address = Ipv4Addr::new(10, 0, 1, host);
    let of_switch = [
        setting(SettingName::SwitchAddress, 0, address.into()),
        setting(SettingName::Incarnation, 0, incarnation),
    ];
    Greeting {
        answers: false,
        number: 7,
        switch_id: 1,
        incarnation,
        address,
        settings: [&of_switch[..], settings].concat(),
        file: "switch.toml".to_owned(),
    }
}

/// Differences that the answer to `greeting` tells: names, indices and the server's values.
fn differing(
    greeter: &mut Greeter,
    server: &Server,
    now: u64,
    greeting: &Greeting,
) -> Vec<(SettingName, u16, Option<u32>)> {
    let from = SocketAddrV4::new(greeting.address, 4793);
    greeter.handle(now, from, &greeting.to_vec(), server);
    let (to, answer) = greeter.poll_answer().unwrap();
    assert_eq!(to, from);
    let answer = Greeting::parse(&answer).unwrap();
    assert!(answer.answers && answer.number == greeting.number);
    let settings = answer.settings.iter();
    settings
        .map(|setting| (setting.name, setting.index, setting.value))
        .collect()
}

#[test]
fn only_what_differs_is_answered() {
    let (mut greeter, server) = greeter();
    let head = u32::from(Ipv4Addr::new(10, 0, 0, 11));
    let right = [
        setting(SettingName::Version, 0, 2),
        setting(SettingName::KeyLength, 0, 16),
        setting(SettingName::Shards, 0, 2),
        setting(SettingName::Head, 1, head),
        setting(SettingName::ChainEpoch, 1, 3),
        setting(SettingName::StateLength, 1, 8),
        setting(SettingName::FirstLease, 1, 0),
    ];
    assert_eq!(
        differing(&mut greeter, &server, 0, &greeting(1, 5, &right)),
        []
    );
    assert_eq!(greeter.differing(), 0);
    for at in 0..right.len() {
        let mut settings = right;
        let own = settings[at].value;
        settings[at].value = Some(99);
        let found = differing(&mut greeter, &server, 0, &greeting(1, 5, &settings));
        assert_eq!(found, [(right[at].name, right[at].index, own)]);
        assert_eq!(greeter.differing(), 1);
    }
    for (wrong, name) in [
        (
            setting(SettingName::StateLength, 2, 8),
            SettingName::StateLength,
        ),
        (setting(SettingName::Head, 2, head), SettingName::Head),
        (
            setting(SettingName::ChainEpoch, 2, 3),
            SettingName::ChainEpoch,
        ),
    ] {
        let found = differing(&mut greeter, &server, 0, &greeting(1, 5, &[wrong]));
        assert_eq!(found, [(name, 2, None)]);
    }
    assert_eq!(
        differing(&mut greeter, &server, 0, &greeting(1, 5, &right)),
        []
    );
    assert_eq!(greeter.differing(), 0);
}

#[test]
fn a_number_is_one_switchs_until_that_is_silent() {
    let (mut greeter, server) = greeter();
    let first = Some(u32::from(Ipv4Addr::new(10, 0, 1, 1)));
    assert_eq!(
        differing(&mut greeter, &server, 0, &greeting(1, 5, &[])),
        []
    );
    let found = differing(&mut greeter, &server, 1_000_000, &greeting(2, 6, &[]));
    let expected = [
        (SettingName::SwitchAddress, 0, first),
        (SettingName::Incarnation, 0, Some(5)),
    ];
    assert_eq!(found, expected);
    let later = FREE_AFTER + 1;
    assert_eq!(
        differing(&mut greeter, &server, later, &greeting(2, 6, &[])),
        []
    );
}

#[test]
fn a_start_that_was_replaced_differs() {
    let (mut greeter, server) = greeter();
    assert_eq!(
        differing(&mut greeter, &server, 0, &greeting(1, 5, &[])),
        []
    );
    // A restart is no second switch.
    assert_eq!(
        differing(&mut greeter, &server, 1, &greeting(1, 6, &[])),
        []
    );
    let found = differing(&mut greeter, &server, 2, &greeting(1, 5, &[]));
    assert_eq!(found, [(SettingName::Incarnation, 0, Some(6))]);
    assert_eq!(
        differing(&mut greeter, &server, 3, &greeting(1, 6, &[])),
        []
    );
}

#[test]
fn what_is_no_greeting_gets_no_answer() {
    let (mut greeter, server) = greeter();
    let from = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 1), 4793);
    let mut answer = greeting(1, 5, &[]);
    answer.answers = true;
    greeter.handle(0, from, &answer.to_vec(), &server);
    greeter.handle(0, from, b"SPH1", &server);
    assert_eq!(greeter.poll_answer(), None);
}
