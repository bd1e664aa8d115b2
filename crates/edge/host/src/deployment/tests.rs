use super::*;

const GOOD: &str = "listen = \"10.0.0.11\"
operator_port = 4796

[controller]
addresses = [\"10.0.0.20\"]

[replication]
shards = 2

[replication.limits]
link_window = 64

[[replication.class]]
id = 1
state_length = 8
first_lease = \"zero\"
";

fn refused(text: &str) -> DeploymentError {
    Deployment::parse("d.toml".as_ref(), text).expect_err(text)
}

fn replaced(from: &str, to: &str) -> DeploymentError {
    assert!(GOOD.contains(from), "{from}");
    refused(&GOOD.replace(from, to))
}

#[test]
fn every_section_arrives() {
    let deployment = Deployment::parse("d.toml".as_ref(), GOOD).unwrap();
    assert_eq!(deployment.listen, Ipv4Addr::new(10, 0, 0, 11));
    assert_eq!(deployment.operator_port, Some(4796));
    let controller = deployment.controller.as_ref().unwrap();
    assert_eq!(controller.addresses, [Ipv4Addr::new(10, 0, 0, 20)]);
    let replication = deployment.replication().unwrap();
    assert_eq!((replication.shards, replication.class.len()), (2, 1));
}

#[test]
fn every_section_has_its_keys() {
    for section in SECTIONS {
        assert!(!(section.keys)().is_empty(), "{}", section.name);
    }
    assert!(keys::of::<StoreFile>().contains(&"term_ms"));
    assert!(keys::of::<u8>().is_empty());
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest() {
    for (from, to, message) in [
        (
            "shards = 2",
            "shads = 2",
            "d.toml:8:1: there is no key `shads` here; did you mean `shards`?",
        ),
        (
            "[controller]",
            "[controler]",
            "d.toml:4:2: there is no key `controler` here; did you mean `controller`?",
        ),
        (
            "link_window",
            "link_windows",
            "d.toml:11:1: there is no key `link_windows` here; did you mean `link_window`?",
        ),
        (
            "state_length",
            "  state_lenght",
            "d.toml:15:3: there is no key `state_lenght` here; did you mean `state_length`?",
        ),
        (
            "[controller]",
            "[cucumber]",
            "d.toml:4:2: there is no key `cucumber` here; \
             there are `listen`, `operator_port`, `controller`, `replication`, `coordination`, \
             `multicast`",
        ),
    ] {
        let error = replaced(from, to);
        assert_eq!(error.code(), "H124");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_key_outside_its_section_is_refused_with_the_section() {
    for (text, message) in [
        (
            "shards = 4\n",
            "d.toml:1:1: `shards` belongs to the section [replication]: move it there",
        ),
        (
            "[[class]]\nid = 1\n",
            "d.toml:1:3: `class` belongs to the section [replication]: move it there, \
             as [[replication.class]]",
        ),
        (
            "[limits]\nrecords = 1\n",
            "d.toml:1:2: `limits` belongs to the section [replication]: move it there, \
             as [replication.limits]",
        ),
        (
            "[controller]\naddresses = []\nreplicas = 3\n",
            "d.toml:3:1: `replicas` belongs to the section [replication]: move it there",
        ),
        (
            "[replication]\nheartbeat_ms = 50\n",
            "d.toml:2:1: `heartbeat_ms` belongs to the section [controller]: move it there",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.code(), "H125");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_wrong_value_is_shown_with_file_and_line() {
    let error = replaced("shards = 2", "shards = \"two\"");
    assert_eq!(error.code(), "H102");
    let text = error.to_string();
    assert!(text.contains("d.toml") && text.contains("line 8"), "{text}");
}

#[test]
fn a_missing_file_is_named() {
    let error = Deployment::read("/nonexistent/store.toml".as_ref()).unwrap_err();
    assert_eq!(error.code(), "H101");
    assert!(error.to_string().contains("/nonexistent/store.toml"));
}

#[test]
fn a_deployment_may_have_coordination_alone() {
    let text = "[controller]\naddresses = [\"10.0.0.20\"]\n[coordination]\nreplicas = 1\n\
                [[coordination.switch]]\nnumber = 4\naddress = \"10.0.0.4\"\n";
    let deployment = Deployment::parse("d.toml".as_ref(), text).unwrap();
    assert_eq!(deployment.replication().unwrap_err().code(), "H126");
    let coordination = deployment.coordination().unwrap();
    assert_eq!((coordination.groups, coordination.switch.len()), (64, 1));
    let error = refused(&text.replace("number", "numbr"));
    assert_eq!(error.code(), "H124");
}

#[test]
fn a_missing_section_is_named() {
    let deployment = Deployment::parse("d.toml".as_ref(), "").unwrap();
    let error = deployment.replication().unwrap_err();
    assert_eq!(error.code(), "H126");
    assert!(error.to_string().contains("[replication]"), "{error}");
    let error = deployment.coordination().unwrap_err();
    assert!(error.to_string().contains("[coordination]"), "{error}");
}
