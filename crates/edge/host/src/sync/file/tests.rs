use super::*;

fn parse(more: &str) -> Result<SyncEngineFile, SyncError> {
    let text = format!(
        "data = \"d\"\n[[group]]\nname = \"a\"\nswitch = \"10.0.0.1\"\ngroup = 0\n\
         locations = 16\n{more}"
    );
    SyncEngineFile::parse("engine.toml".as_ref(), &text)
}

#[test]
fn what_is_not_said_has_its_usual_value() {
    let file = parse("").expect("whole");
    let group = &file.groups[0];
    assert_eq!((file.listen, file.rpc), (Ipv4Addr::UNSPECIFIED, None));
    assert_eq!(group.socket().to_string(), "10.0.0.1:4798");
    assert_eq!((group.batch, group.poll_us, group.windows), (16, 2_000, 16));
}

#[test]
fn each_setting_has_a_range() {
    let again = "[[group]]\nname = \"NAME\"\nswitch = \"10.0.0.1\"\ngroup = 0\nlocations = 1\n";
    let (same, twin) = (again.replace("NAME", "a"), again.replace("NAME", "b"));
    for (more, field) in [
        (same.as_str(), "name"),
        (&twin, "group"),
        ("batch = 33", "batch"),
        ("poll_us = 49", "poll_us"),
        ("retry_us = 0", "retry_us"),
        ("windows = 0", "windows"),
        ("metrics = [16]", "metrics"),
    ] {
        let refused = parse(more).expect_err(more);
        assert!(matches!(&refused, SyncError::Setting { field: said, .. } if *said == field));
        assert_eq!(refused.code(), "H503");
    }
    for (more, field) in [
        ("prefix = \"\"", "prefix"),
        ("interval_ms = 0", "interval_ms"),
        ("windows = 0", "windows"),
    ] {
        let refused = parse(&format!("[redis]\nurl = \"redis://a\"\n{more}"));
        let refused = refused.expect_err(more);
        assert!(matches!(&refused, SyncError::Setting { field: said, .. } if *said == field));
    }
    for (more, field) in [
        ("detection_ms = 199", "detection_ms"),
        (&format!("announce = \"{}\"", "a".repeat(257)), "announce"),
    ] {
        let refused = parse(&format!("[etcd]\nendpoints = [\"http://a\"]\n{more}"));
        let refused = refused.expect_err(more);
        assert!(matches!(&refused, SyncError::Setting { field: said, .. } if *said == field));
    }
    assert_eq!(parse("colour = 1").expect_err("no such key").code(), "H502");
    let empty = SyncEngineFile::parse("engine.toml".as_ref(), "data = \"d\"");
    assert_eq!(empty.expect_err("no group").code(), "H503");
}

#[test]
fn facts_have_one_place_and_others_are_told_where_the_engine_is() {
    let mut file = parse("[etcd]\nendpoints = [\"http://a\"]\n").expect("whole");
    assert_eq!(file.detection_us(), 2_000_000);
    assert_eq!(file.check_place().expect_err("two").code(), "H507");
    file.data = None;
    file.check_place().expect("etcd alone");
    assert_eq!(file.announced(), "");
    file.rpc = Some(SocketAddr::from(([10, 0, 0, 1], 9560)));
    assert_eq!(file.announced(), "10.0.0.1:9560");
    file.etcd.as_mut().expect("a section").announce = Some("a:1".to_owned());
    assert_eq!(file.announced(), "a:1");
    file.etcd = None;
    let refused = file.check_place().expect_err("neither");
    assert!(refused.to_string().contains("neither"), "{refused}");
    file.data = Some("d".into());
    file.check_place().expect("a folder alone");
}

const FLOWS: &str = "data = \"d\"\n[[flows]]\nname = \"nat\"\nstores = [\"10.0.1.1\", \
                     \"10.0.1.2:99\"]\nswitch = 60000\n";

#[test]
fn flows_alone_are_followed_and_have_usual_values() {
    let file = SyncEngineFile::parse("engine.toml".as_ref(), FLOWS).expect("whole");
    let flows = &file.flows[0];
    let stores: Vec<String> = flows.stores.iter().map(ToString::to_string).collect();
    assert_eq!(stores, ["10.0.1.1:4793", "10.0.1.2:99"]);
    assert!(flows.classes.is_empty() && flows.writes && file.groups.is_empty());
    assert_eq!((flows.poll_us, flows.retry_us), (100_000, 20_000));
    assert_eq!(flows.most_flows, 1 << 20);
}

#[test]
fn each_setting_of_flows_has_a_range() {
    let twin = FLOWS.split_once('\n').expect("lines").1.to_owned();
    for (old, new, field) in [
        ("\"nat\"", "\"\"", "name"),
        ("\"10.0.1.2:99\"", "\"10.0.1.1:4793\"", "stores"),
        ("[\"10.0.1.1\", \"10.0.1.2:99\"]", "[]", "stores"),
        ("60000", "0", "switch"),
        ("60000", "1\npoll_us = 999", "poll_us"),
        ("60000", "1\nretry_us = 999", "retry_us"),
        ("60000", "1\nmost_flows = 0", "most_flows"),
        ("60000\n", &format!("1\n{twin}"), "name"),
        (
            "60000\n",
            "1\n[[group]]\nname = \"nat\"\nswitch = \"10.0.0.1\"\ngroup = 0\nlocations = 1\n",
            "name",
        ),
    ] {
        let text = FLOWS.replace(old, new);
        let refused = SyncEngineFile::parse("engine.toml".as_ref(), &text).expect_err(new);
        assert!(
            matches!(&refused, SyncError::Setting { field: said, .. } if *said == field),
            "{new}: {refused}"
        );
    }
    for wrong in ["10.0.1", "10.0.1.1:0x1", "store.example:4793", "[::1]:4793"] {
        let text = FLOWS.replace("10.0.1.2:99", wrong);
        let refused = SyncEngineFile::parse("engine.toml".as_ref(), &text).expect_err(wrong);
        assert_eq!(refused.code(), "H502");
        assert!(refused.to_string().contains(wrong), "{refused}");
    }
}

#[test]
fn each_setting_of_snapshots_has_a_range() {
    let whole = "[[flows.snapshots]]\nname = \"a\"\nclass = 3\nelements = 8\n";
    let text = format!("{FLOWS}{whole}");
    let file = SyncEngineFile::parse("engine.toml".as_ref(), &text).expect("whole");
    let snapshots = &file.flows[0].snapshots[0];
    assert_eq!((snapshots.arrays, snapshots.merge), (1, MergeName::Add));
    for (old, new, field) in [
        ("\"a\"", "\"nat\"", "name"),
        ("\"a\"", "\"\"", "name"),
        ("elements = 8", "elements = 0", "elements"),
        ("elements = 8", "elements = 1048576\narrays = 2", "elements"),
        ("elements = 8", "elements = 8\narrays = 0", "elements"),
        ("60000\n", "60000\nclasses = [1]\n", "class"),
    ] {
        let refused = SyncEngineFile::parse("engine.toml".as_ref(), &text.replace(old, new));
        let refused = refused.expect_err(new);
        assert!(
            matches!(&refused, SyncError::Setting { field: said, .. } if *said == field),
            "{new}: {refused}"
        );
    }
    let groups = |locations: u32| {
        format!(
            "[[group]]\nname = \"g\"\nswitch = \"10.0.0.1\"\ngroup = 0\nlocations = {locations}\n"
        )
    };
    let views = |locations, views: &str| {
        let text = format!("{text}views = [{views}]\n{}", groups(locations));
        SyncEngineFile::parse("engine.toml".as_ref(), &text)
    };
    let one = "{ switch = 1, groups = [\"g\"] }";
    let file = views(16, one).expect("whole");
    assert!(file.is_of_snapshots("g") && !file.is_of_snapshots("a"));
    for (locations, wrong, field) in [
        (18, one, "groups"),
        (15, one, "groups"),
        (16, "{ switch = 1, groups = [\"h\"] }", "groups"),
        (16, "{ switch = 1, groups = [] }", "groups"),
        (16, "{ switch = 0, groups = [\"g\"] }", "switch"),
        (
            16,
            &format!("{one}, {{ switch = 2, groups = [\"g\"] }}"),
            "groups",
        ),
        (
            16,
            &format!("{one}, {{ switch = 1, groups = [\"g\"] }}"),
            "switch",
        ),
    ] {
        let refused = views(locations, wrong).expect_err(wrong);
        assert!(
            matches!(&refused, SyncError::Setting { field: said, .. } if *said == field),
            "{wrong}: {refused}"
        );
    }
    let wrong = text.replace("elements = 8", "elements = 8\nmerge = \"least\"");
    let refused = SyncEngineFile::parse("engine.toml".as_ref(), &wrong).expect_err("no operation");
    assert_eq!(refused.code(), "H502");
}
