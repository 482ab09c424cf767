use super::*;

fn parse(text: &str) -> Result<CaseFile> {
    CaseFile::parse("test", text)
}

#[test]
fn directives_hold_until_changed() {
    let file = parse(
        "# c\n@db a\n@set epoch=s accept=text/csv\nSELECT 1\n@set\n\nSELECT 2\n@db\n\
         @expect 400 {\"error\":\"x\"}\n@reason because\nSELECT 3",
    )
    .unwrap();
    let cases: Vec<&Case> = file.cases().collect();
    assert_eq!(cases[0].key, "[db=a epoch=s accept=text/csv] SELECT 1");
    assert_eq!(cases[0].request.parameters.len(), 2);
    assert_eq!(cases[0].request.accept.as_deref(), Some("text/csv"));
    assert_eq!(cases[1].key, "[db=a] SELECT 2");
    assert_eq!(cases[2].key, "[] SELECT 3");
    let expected = cases[2].expected.as_ref().unwrap();
    assert_eq!(
        (expected.status, expected.body.as_str(), expected.reason.as_str()),
        (400, "{\"error\":\"x\"}", "because")
    );
}

#[test]
fn scripts_keep_their_order() {
    let file = parse("@script s d1 d2\nquery db=x : CREATE y\nwrite db=x\n|a b=1 \n|e c\\r\\t\nget : SHOW z\n@end").unwrap();
    let [Group::Script { databases, steps }] = file.groups.as_slice() else { panic!("one script") };
    assert_eq!(databases, &["d1", "d2"]);
    let kinds: Vec<Kind> = steps.iter().map(|step| step.request.kind).collect();
    assert_eq!(kinds, [Kind::Query, Kind::Write, Kind::Get]);
    assert_eq!(steps[1].request.text, "a b=1 \nc\r\t\n");
    assert_eq!(steps[0].key, "s 1: query db=x : CREATE y");
}

#[test]
fn mistakes_are_reported() {
    for text in [
        "@nope",
        "@set a",
        "@script",
        "@script a",
        "@script a b\n@end",
        "@end",
        "|x",
        "@script s d\nselect\n@end",
        "@script s d\nquery x\n@end",
        "@script s d\nquery : x\n|y\n@end",
        "@script s d\nwrite\n|e \\q\n@end",
        "SELECT 1\nSELECT 1",
        "@expect 200 {}\nSELECT 1",
        "@reason x\nSELECT 1",
        "@expect 200 {}\n@reason x",
        "@expect x",
    ] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_files_of_this_crate_are_well_formed() {
    let files = read_all(&crate::root()).unwrap();
    let queries: std::collections::HashSet<&str> =
        files.iter().flat_map(CaseFile::cases).map(|case| case.request.text.as_str()).collect();
    assert!(queries.len() >= 400, "{}", queries.len());
}
