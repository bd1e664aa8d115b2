//! The wrong configurations.

pub const SWITCH: &str = r#"
[replication]
switch = 1
address = "10.10.0.1"
mac = "02:00:00:00:0a:01"
port = 2
links = [0]
shards = 4
chain_epoch = 1
heads = [{ address = "10.10.0.11", mac = "02:00:00:00:0b:01" }]
classes = [{ id = 1, first_lease = "zero" }]
"#;

pub const STORE: &str = r#"
[replication]
chain = ["10.10.0.11"]
chain_epoch = 1
shards = 4
[[replication.class]]
id = 1
state_length = 8
first_lease = "zero"
"#;

/// A switch's file that sets by hand what `[replication]` sets, but for one part.
const BY_HAND: &str = r#"
[[defaults]]
table = "replication_identity"
action = "set_identity"
params = [1, "10.10.0.1", "02:00:00:00:0a:01"]
[[registers]]
name = "replication_incarnation"
index = 0
value = "random"
"#;

/// The process in the place of a store server.
#[derive(Clone, Copy, PartialEq)]
pub enum Peer {
    Store,
    /// The second member of the chain.
    Replica,
    /// A server of the same format of greetings and another version of messages.
    OtherVersion,
    /// A store server and its controller.
    Controlled,
    Nobody,
}

/// A wrong configuration.
pub struct Case {
    pub name: &'static str,
    /// The switch's file.
    pub switch: String,
    /// The store's file.
    pub store: String,
    pub peer: Peer,
    /// Keys of the switch and of the store.
    pub keys: [Option<&'static str>; 2],
    /// Another switch, with a file of its own, is there before.
    pub before: Option<String>,
    /// Text of the switch's log, or of the error with which it ends.
    pub said: &'static str,
    /// Text of the store's log, if a store hears anything of it.
    pub told: Option<&'static str>,
    /// The switch is refused when it starts.
    pub refused: bool,
}

pub fn case(name: &'static str, said: &'static str, told: Option<&'static str>) -> Case {
    Case {
        name,
        switch: SWITCH.into(),
        store: STORE.into(),
        peer: Peer::Store,
        keys: [None, None],
        before: None,
        said,
        told,
        refused: false,
    }
}

/// `text` with `to` in the place of `from`, which it has.
pub fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replace(from, to)
}

fn in_switch(mut case: Case, from: &str, to: &str) -> Case {
    case.switch = replaced(&case.switch, from, to);
    case
}

fn in_store(mut case: Case, from: &str, to: &str) -> Case {
    case.store = replaced(&case.store, from, to);
    case
}

fn refused(name: &'static str, switch: String, said: &'static str) -> Case {
    Case {
        switch,
        peer: Peer::Nobody,
        refused: true,
        ..case(name, said, None)
    }
}

fn sealed(mut case: Case, keys: [Option<&'static str>; 2]) -> Case {
    case.keys = keys;
    case
}

/// Settings of the two files that do not fit.
pub fn of_settings() -> Vec<Case> {
    vec![
        in_store(
            case(
                "class",
                "state_length of class 1: here 8 (its program); there no such class",
                Some("state_length of class 1: here no such class"),
            ),
            "id = 1",
            "id = 2",
        ),
        in_store(
            case(
                "length",
                "state_length of class 1: here 8 (its program); there 4 (STORE:8)",
                Some("state_length of class 1: here 4 (STORE:8); there 8 (its program)"),
            ),
            "state_length = 8",
            "state_length = 4",
        ),
        in_store(
            case(
                "first lease",
                "first_lease of class 1: here zero (SWITCH:11); there none (STORE:9)",
                Some("first_lease of class 1: here none (STORE:9); there zero (SWITCH:11)"),
            ),
            "\"zero\"",
            "\"none\"",
        ),
        in_store(
            case(
                "epoch",
                "chain_epoch of shard 0: here 1 (SWITCH:9); there 2 (STORE:4)",
                Some("chain_epoch of shard 0: here 2 (STORE:4); there 1 (SWITCH:9)"),
            ),
            "chain_epoch = 1",
            "chain_epoch = 2",
        ),
        in_store(
            case(
                "number of shards",
                "shards: here 4 (SWITCH:8); there 2 (STORE:5)",
                Some("shards: here 2 (STORE:5); there 4 (SWITCH:8)"),
            ),
            "shards = 4",
            "shards = 2",
        ),
        Case {
            peer: Peer::Replica,
            ..in_store(
                in_switch(
                    case(
                        "a replica for the head",
                        "head of the chain of shard 0: here 10.10.0.12 (SWITCH:10); there 10.10.0.11 (STORE:3)",
                        Some(
                            "head of the chain of shard 0: here 10.10.0.11 (STORE:3); there 10.10.0.12",
                        ),
                    ),
                    "10.10.0.11",
                    "10.10.0.12",
                ),
                "[\"10.10.0.11\"]",
                "[\"10.10.0.11\", \"10.10.0.12\"]",
            )
        },
        Case {
            peer: Peer::OtherVersion,
            ..case(
                "version",
                "version of the replication message: here 2 (SWITCH); there 1 (old)",
                None,
            )
        },
        Case {
            before: Some(replaced(SWITCH, "10.10.0.1\"", "10.10.0.2\"").replace("0a:01", "0a:02")),
            ..case(
                "two switches with one number",
                "address of the switch that has this number: here 10.10.0.1 (SWITCH:4); there 10.10.0.2",
                Some("address of the switch that has this number: here 10.10.0.2"),
            )
        },
    ]
}

/// Mistakes that keep the two from hearing each other.
pub fn of_the_way() -> Vec<Case> {
    let [a, b] = ["0a", "0b"];
    vec![
        in_switch(
            case("addresses swapped", "nobody has the address", None),
            "address = \"10.10.0.1\"\nmac = \"02:00:00:00:0a:01\"\nport = 2\nlinks = [0]\nshards = 4\nchain_epoch = 1\nheads = [{ address = \"10.10.0.11\"",
            "address = \"10.10.0.11\"\nmac = \"02:00:00:00:0a:01\"\nport = 2\nlinks = [0]\nshards = 4\nchain_epoch = 1\nheads = [{ address = \"10.10.0.1\"",
        ),
        in_switch(
            case("wrong port of the switch", "nobody has the address", None),
            "port = 2\nlinks = [0]",
            "port = 1\nlinks = [0]",
        ),
        in_switch(
            case(
                "wrong neighbour's MAC",
                "MAC address is 02:00:00:00:0b:01, and not 02:00:00:00:0b:77 (SWITCH:10)",
                None,
            ),
            "0b:01",
            "0b:77",
        ),
        in_store(
            case(
                "wrong port of the store",
                "no store server listens at its UDP port 4793",
                None,
            ),
            "shards = 4",
            "shards = 4\nrequest_port = 4800",
        ),
        Case {
            peer: Peer::Nobody,
            ..case(
                "no store",
                "no store server listens at its UDP port 4793",
                None,
            )
        },
        sealed(
            case(
                "other keys",
                "the store does not answer",
                Some("its seal does not fit the keys"),
            ),
            [Some(a), Some(b)],
        ),
        sealed(
            case(
                "keys on the switch only",
                "give it --keys too",
                Some("its messages are sealed, and this server has no keys"),
            ),
            [Some(a), None],
        ),
        sealed(
            case(
                "keys on the store only",
                "that both sides have keys, or neither",
                Some("message refused: it is not sealed"),
            ),
            [None, Some(a)],
        ),
        Case {
            switch: replaced(SWITCH, "heads =", "# heads =").replace("shards = 4", "")
                + "[chains]\ncontrollers = [\"10.10.0.20:4795\"]\nswitch = 1\nport = 2\nmtu = 1500\n\
                   servers = [{ address = \"10.10.0.12\", mac = \"02:00:00:00:0b:01\" }]\n",
            store: replaced(STORE, "chain = [\"10.10.0.11\"]", "replicas = 1")
                + "[controller]\naddresses = [\"10.10.0.20\"]\nlog = \"LOG\"\n",
            peer: Peer::Controlled,
            ..case(
                "unknown head of a shard",
                "the controller names 10.10.0.11, which is not in `servers`",
                None,
            )
        },
    ]
}

/// Settings that a replicated program lacks.
pub fn of_the_program() -> Vec<Case> {
    let entries: String = (0..4)
        .map(|shard| {
            format!(
                "[[entries]]\ntable = \"replication_shards\"\nkeys = [{shard}]\naction = \"chain\"\n\
                 params = [\"10.10.0.11\", \"02:00:00:00:0b:01\", 2, 1, 1500]\n"
            )
        })
        .collect();
    vec![
        refused("no identity", entries.clone(), "error[H243]"),
        refused("no file", String::new(), "error[H243]"),
        refused(
            "no chains",
            replaced(SWITCH, "heads =", "# heads ="),
            "error[H244]",
        ),
        refused(
            "a shard without a chain",
            replaced(SWITCH, "shards = 4", "shards = 2"),
            "error[H245]",
        ),
        refused(
            "no mirror sessions",
            BY_HAND.to_owned() + &entries,
            "error[H246]",
        ),
        refused(
            "a mirror session too short",
            SWITCH.to_owned() + "[[mirror_sessions]]\nsession = 33\nport = 2\ntruncate = 114\n",
            "error[H247]",
        ),
    ]
}
