use super::*;
use crate::path::tests::parse;
use crate::proto::gnmi::typed_value::Value;
use crate::subscriptions::tests::{facts, groups, window};

/// A request for a path.
fn request(path: &str, encoding: Encoding) -> GetRequest {
    GetRequest {
        path: vec![parse(path)],
        encoding: encoding.into(),
        ..GetRequest::default()
    }
}

/// The answer from two groups: `packets` with values 5, 6, 7 and two windows, and `bytes`, whose
/// view is incomplete.
fn answer(request: &GetRequest) -> Result<GetResponse, Refusal> {
    let (groups, facts) = (groups(), facts(Some(&[5, 6, 7]), None));
    let windows = [vec![window(4, &[1, 2, 3]), window(5, &[2, 3, 4])], vec![]];
    let tree = Tree {
        groups: &groups,
        facts: &facts,
        windows: &windows,
        unix_ns: 77,
    };
    get(request, &tree)
}

fn json_of(path: &str, encoding: Encoding) -> Vec<String> {
    let response = answer(&request(path, encoding)).expect("it is there");
    assert_eq!(response.notification[0].timestamp, 77);
    let updates = response.notification[0].update.iter();
    updates
        .map(
            |update| match update.val.as_ref().and_then(|it| it.value.as_ref()) {
                Some(Value::JsonVal(text) | Value::JsonIetfVal(text)) => {
                    let text = String::from_utf8(text.to_vec()).expect("text");
                    serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
                    text
                }
                other => panic!("{other:?}"),
            },
        )
        .collect()
}

fn refused(path: &str) -> Refusal {
    answer(&request(path, Encoding::Json)).expect_err(path)
}

#[test]
fn leaves_are_bare_and_nodes_are_objects() {
    let bound = "/sync/groups/group[name=packets]/state/bound";
    assert_eq!(json_of(bound, Encoding::Json), ["2"]);
    assert_eq!(json_of(bound, Encoding::JsonIetf), ["\"2\""]);
    let value = "/sync/groups/group[name=packets]/values/value[location=1]";
    assert_eq!(
        json_of(value, Encoding::Json),
        [r#"{"location":1,"state":{"value":6}}"#]
    );
    assert_eq!(
        json_of(value, Encoding::JsonIetf),
        [r#"{"stateplane-sync:location":1,"stateplane-sync:state":{"value":"6"}}"#]
    );
    let values = "/sync/groups/group[name=packets]/values";
    let all = &json_of(values, Encoding::Json)[0];
    assert!(
        all.starts_with(r#"{"value":[{"location":0,"state":{"value":5}},"#),
        "{all}"
    );
    let window = "/sync/groups/group/windows/window[number=5]/state/epoch";
    assert_eq!(json_of(window, Encoding::Json), ["5"]);
    let packed = "/sync/groups/group[name=packets]/values-packed";
    assert_eq!(json_of(packed, Encoding::Json).len(), 1);
}

#[test]
fn a_list_without_keys_gives_an_update_for_each_entry() {
    let complete = json_of("/sync/groups/group/state/complete", Encoding::Json);
    assert_eq!(complete, ["true", "false"]);
    // Groups and locations that do not exist are left out.
    assert_eq!(json_of("/.../bound", Encoding::Json), ["2"]);
    let whole = &json_of("/", Encoding::JsonIetf)[0];
    assert!(
        whole.starts_with(
            r#"{"stateplane-sync:sync":{"state":{"term":"9"},"groups":{"group":[{"name":"packets","#
        ),
        "{whole}"
    );
    assert!(
        whole.contains(r#"{"name":"bytes","state":{"locations":3,"complete":false,"#),
        "{whole}"
    );
    assert!(
        !whole.contains("\"values-packed\":\"BQAA"),
        "that is named only"
    );
    assert!(
        whole.contains(r#""window":[{"number":"4","state":{"incarnation":1,"epoch":4,"#),
        "{whole}"
    );
}

#[test]
fn proto_has_an_update_for_each_leaf() {
    let mut asked = request("values", Encoding::Proto);
    asked.prefix = Some(Path {
        target: "engine".into(),
        ..parse("/sync/groups/group[name=packets]")
    });
    let response = answer(&asked).expect("values");
    let notification = &response.notification[0];
    let prefix = notification.prefix.as_ref().expect("the target is told");
    assert_eq!((prefix.target.as_str(), prefix.elem.len()), ("engine", 0));
    let values = notification
        .update
        .iter()
        .map(|it| it.val.as_ref().and_then(|it| it.value.clone()));
    let expected = [5, 6, 7].map(|value| Some(Value::UintVal(value)));
    assert!(values.eq(expected));
    let last = notification.update[2].path.as_ref().expect("a path");
    assert_eq!(
        last,
        &parse("/sync/groups/group[name=packets]/values/value[location=2]/state/value")
    );
}

#[test]
fn each_path_has_a_notification_and_config_is_empty() {
    let mut asked = request("/sync/state/term", Encoding::Json);
    asked.path.push(parse("/sync/groups/group/state/stamp"));
    assert_eq!(answer(&asked).expect("both").notification.len(), 2);
    asked.r#type = DataType::Config.into();
    let response = answer(&asked).expect("nothing to configure");
    assert!(response.notification.iter().all(|it| it.update.is_empty()));
    asked.r#type = DataType::Operational.into();
    assert!(
        !answer(&asked).expect("state").notification[0]
            .update
            .is_empty()
    );
    asked.r#type = 4;
    assert_eq!(
        answer(&asked).expect_err("no such type").status,
        Code::InvalidArgument
    );
}

#[test]
fn what_is_not_there_is_not_found_and_the_message_says_why() {
    for (path, code, said) in [
        (
            "/sync/groups/group[name=colour]",
            "SYNC020",
            "groups are: packets, bytes",
        ),
        (
            "/sync/groups/group[name=packets]/values/value[location=3]",
            "SYNC012",
            "they are 0 to 2",
        ),
        (
            "/sync/groups/group[name=bytes]/values",
            "SYNC021",
            "not complete",
        ),
        (
            "/sync/groups/group[name=bytes]/state/age",
            "SYNC021",
            "not complete",
        ),
        (
            "/sync/groups/group/windows/window[number=3]",
            "SYNC021",
            "kept for a while",
        ),
    ] {
        let refused = refused(path);
        assert_eq!(
            (refused.status, refused.code),
            (Code::NotFound, code),
            "{path}"
        );
        assert!(refused.message.contains(said), "{}", refused.message);
    }
    let colour = refused("/sync/colour");
    assert_eq!(
        (colour.status, colour.code),
        (Code::InvalidArgument, "SYNC023")
    );
    assert_eq!(
        answer(&request("/", Encoding::Bytes))
            .expect_err("BYTES")
            .status,
        Code::Unimplemented
    );
}

#[test]
fn an_answer_is_bounded() {
    let groups = [GroupInfo {
        name: "many".into(),
        locations: MOST_LEAVES as u32 + 1,
    }];
    let values = vec![0; 8 * (MOST_LEAVES + 1)];
    let mut facts = facts(Some(&[]), None);
    facts.groups.truncate(1);
    facts.groups[0].values = Some(std::sync::Arc::new(values));
    let tree = Tree {
        groups: &groups,
        facts: &facts,
        windows: &[Vec::new()],
        unix_ns: 0,
    };
    let whole = request("/sync/groups/group/values", Encoding::Json);
    let refused = get(&whole, &tree).expect_err("too many");
    assert_eq!(
        (refused.status, refused.code),
        (Code::ResourceExhausted, "SYNC026")
    );
    let one = request(
        "/sync/groups/group/values/value[location=9]",
        Encoding::Json,
    );
    assert!(get(&one, &tree).is_ok());
}
