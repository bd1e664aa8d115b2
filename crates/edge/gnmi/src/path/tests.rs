use super::*;

/// A path from text as `/sync/groups/group[name=a]`.
pub(crate) fn parse(text: &str) -> Path {
    let elem = text.split('/').filter(|part| !part.is_empty()).map(|part| {
        let (name, keys) = part.split_once('[').unwrap_or((part, ""));
        let keys = keys.trim_end_matches(']').split("][");
        PathElem {
            name: name.to_owned(),
            key: keys
                .filter_map(|pair| pair.split_once('='))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    });
    path_of(elem.collect())
}

fn select(text: &str) -> Result<Selection, Refusal> {
    Selection::of(None, Some(&parse(text)))
}

fn trails(text: &str) -> Vec<String> {
    let selection = select(text).expect("a path of the schema");
    let trails = selection.trails.iter();
    trails
        .map(|trail| {
            let names = trail.iter().map(|node| node.name);
            names.collect::<Vec<_>>().join("/")
        })
        .collect()
}

#[test]
fn a_path_means_a_node_and_all_below_it() {
    let all = select("/").expect("the root");
    assert!(all.trails.len() == 1 && all.trails[0].is_empty());
    assert_eq!(all.leaves.len(), 18, "all but what is named only");
    assert!(!all.leaves.contains(&Leaf::ValuesPacked));
    let bound = select("/sync/groups/group[name=a]/state/bound").expect("a leaf");
    assert_eq!(Vec::from_iter(&bound.leaves), [&Leaf::Bound]);
    assert!(bound.has_group("a") && !bound.has_group("b"));
    let value = select("sync/groups/group/values/value[location=7]").expect("an entry");
    assert_eq!((value.location(), value.group()), (Some(7), None));
    assert_eq!(Vec::from_iter(&value.leaves), [&Leaf::Value]);
}

#[test]
fn wildcards_stand_for_one_element_or_any_number() {
    let states = ["sync/groups/group/state"];
    assert_eq!(trails("/sync/groups/*/state"), states);
    assert_eq!(trails("/*/*/group[name=*]/state"), states);
    assert_eq!(trails("/sync/.../bound"), ["sync/groups/group/state/bound"]);
    assert_eq!(
        trails("/.../values-packed"),
        [
            "sync/groups/group/values-packed",
            "sync/groups/group/windows/window/state/values-packed"
        ]
    );
    assert_eq!(trails("/sync/groups/..."), ["sync/groups"]);
    assert_eq!(trails("/sync/.../..."), ["sync"]);
    assert_eq!(
        trails("/.../epoch"),
        [
            "sync/groups/group/state/epoch",
            "sync/groups/group/windows/window/state/epoch"
        ]
    );
    let keyed = select("/.../*[location=3]/.../value").expect("a leaf");
    assert_eq!(keyed.location(), Some(3));
    assert_eq!(Vec::from_iter(&keyed.leaves), [&Leaf::Value]);
    // Leaves that have to be named are not meant by a wildcard.
    let below = trails("/sync/groups/group/*");
    let names = ["state", "values", "windows"].map(|it| format!("sync/groups/group/{it}"));
    assert_eq!(below, names);
}

#[test]
fn prefix_origin_and_module_are_taken() {
    let mut prefix = parse("/stateplane-sync:sync/groups");
    prefix.target = "engine-1".into();
    prefix.origin = MODULE.into();
    let path = parse("group[name=a]/windows/window[number=9]");
    let selection = Selection::of(Some(&prefix), Some(&path)).expect("a window");
    assert_eq!(
        selection.text,
        "/sync/groups/group[name=a]/windows/window[number=9]"
    );
    assert_eq!(
        (selection.window(), selection.target.as_str()),
        (Some(9), "engine-1")
    );
    let twice = Path {
        origin: MODULE.into(),
        ..path
    };
    let refused = Selection::of(Some(&prefix), Some(&twice)).expect_err("two origins");
    assert_eq!(refused.status, tonic::Code::InvalidArgument);
    prefix.origin = "openconfig".into();
    let refused = Selection::of(Some(&prefix), None).expect_err("another schema");
    assert_eq!(refused.status, tonic::Code::Unimplemented);
}

#[test]
fn wrong_paths_are_refused_with_what_would_be_right() {
    let long = "/*".repeat(33);
    for (wrong, said) in [
        (
            "/interfaces",
            "there is no node /interfaces: below / are sync",
        ),
        (
            "/sync/groups/group[name=a]/colour",
            "below /sync/groups/group are state, values-packed, values, windows",
        ),
        ("/sync/state/term/more", "/sync/state/term is a leaf"),
        (
            "/sync/groups/group[colour=1]",
            "`group` in /sync/groups/group[colour=1] has the key `name` alone",
        ),
        ("/sync[name=a]", "has no keys"),
        (
            "/sync/groups/group/values/value[location=-1]",
            "a location is a decimal number",
        ),
        (
            "/sync/groups/group/values/value[location=4294967296]",
            "a location is a decimal number",
        ),
        (
            "/sync/groups/group/values/value[location=01]",
            "a location is a decimal number",
        ),
        (
            "/sync/groups/group/windows/window[number=last]",
            "a window is a decimal number",
        ),
        ("/...[name=a]", "`...` has no keys"),
        (&long, "32 elements"),
    ] {
        let refused = select(wrong).expect_err(wrong);
        assert_eq!(refused.status, tonic::Code::InvalidArgument, "{wrong}");
        assert!(
            refused.message.contains(said),
            "{wrong}: {}",
            refused.message
        );
    }
    let key = select("/sync/groups/group/name").expect_err("a key");
    assert_eq!(key.status, tonic::Code::Unimplemented);
    #[expect(deprecated, reason = "it is refused")]
    let old = Path {
        element: vec!["sync".into()],
        ..Path::default()
    };
    assert!(Selection::of(None, Some(&old)).is_err());
}

/// Leaves of the YANG module, as paths without keys of lists.
fn yang_leaves() -> BTreeSet<String> {
    let text = include_str!("../../yang/stateplane-sync.yang");
    let (mut open, mut found): (Vec<Option<String>>, _) = (Vec::new(), BTreeSet::new());
    let mut keys = Vec::new();
    let mut quoted = false;
    for line in text.lines() {
        if !quoted {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["key", name] = words[..] {
                let list = open.iter().flatten().next_back().expect("a list");
                keys.push(format!("/{list}/{}", name.trim_matches(['"', ';'])));
            }
            if line.contains('{') {
                let name = match words[..] {
                    ["container" | "list" | "leaf", name, "{"] => Some(name.to_owned()),
                    _ => None,
                };
                if words.first() == Some(&"leaf") {
                    let parts = open.iter().flatten().cloned().chain(name.clone());
                    found.insert(parts.collect::<Vec<_>>().join("/"));
                }
                open.push(name);
            }
            for _ in line.matches('}') {
                open.pop();
            }
        }
        quoted ^= line.matches('"').count() % 2 == 1;
    }
    assert!(open.is_empty(), "{open:?}");
    found.retain(|path: &String| !keys.iter().any(|key| path.ends_with(key)));
    found
}

#[test]
fn the_yang_module_has_the_leaves_that_are_served() {
    fn below(node: &'static Node, path: &str, found: &mut BTreeSet<String>) {
        for child in node.children {
            let path = format!("{path}/{}", child.name);
            if matches!(child.kind, Kind::Leaf(_)) {
                found.insert(path.trim_start_matches('/').to_owned());
            }
            below(child, &path, found);
        }
    }
    let mut served = BTreeSet::new();
    below(&ROOT, "", &mut served);
    assert_eq!(served, yang_leaves());
}
