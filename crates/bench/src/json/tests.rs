use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

fn differ(expected: &str, actual: &str) -> Vec<String> {
    differences(&parse(expected), &parse(actual), 1e-12, 10)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn documents_print_as_they_were_read() {
    let text = r#"{"b":[1,2.50,-3e5,null,true],"a":{"x\n\"\\":"\u0001é"}}"#;
    assert_eq!(parse(text).to_string(), text);
    assert_eq!(parse(r#"" \u00e9\ud83d\ude00\/""#), Json::String(" é😀/".to_owned()));
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        "{",
        "[1,]",
        "{\"a\":}",
        "01",
        "1.",
        "tru",
        "\"a",
        "\"\\x\"",
        "\"\\ud800\"",
        "1 2",
        "{a:1}",
        "-",
        "\"\n\"",
    ] {
        assert!(Json::parse(text.as_bytes()).is_err(), "{text:?}");
    }
    assert!(Json::parse(&vec![b'['; 100_000]).is_err());
}

#[test]
fn sequences_are_read_one_by_one() {
    let documents = Json::parse_sequence(b"{\"a\":1}\n{\"a\":2}\n").unwrap();
    assert_eq!(documents, [parse("{\"a\":1}"), parse("{\"a\":2}")]);
    assert!(Json::parse_sequence(b"{} x").is_err());
}

#[test]
fn differences_name_their_place() {
    assert_eq!(differ("[1,{\"a\":[1,2]}]", "[1,{\"a\":[1,3]}]"), ["[1].a[1]: expected 2, got 3"]);
    assert_eq!(
        differ("{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}"),
        ["a: expected 1, got nothing", "c: expected nothing, got 3"]
    );
    assert_eq!(differ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"), [""; 0]);
    assert_eq!(differ("[1]", "[1,2]").len(), 1);
    assert_eq!(differ("null", "0"), ["document: expected null, got 0"]);
}

#[test]
fn numbers_are_compared_by_kind() {
    assert!(differ("0.1", "0.1000000000000001").is_empty());
    assert!(!differ("0.1", "0.100000000001").is_empty());
    assert!(!differ("9007199254740992", "9007199254740993").is_empty());
    assert!(!differ("22", "22.0").is_empty());
    assert!(differ("3", "3.0000000000000004").is_empty());
    assert!(differ("1e21", "1.0000000000000001e21").is_empty());
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_filter_map("finite", |x| serde_json::Number::from_f64(x)
            .map(serde_json::Value::Number)),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reads_what_another_library_writes(value in any_json()) {
        let text = serde_json::to_string(&value).unwrap();
        let read = Json::parse(text.as_bytes()).unwrap();
        prop_assert!(differences(&read, &read, 0.0, 1).is_empty());
        // Both texts go through the other library's float reader, which rounds alike but not exactly.
        let wanted: serde_json::Value = serde_json::from_str(&text).unwrap();
        let again: serde_json::Value = serde_json::from_str(&read.to_string()).unwrap();
        prop_assert_eq!(again, wanted);
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Json::parse(&bytes);
        let _ = Json::parse_sequence(&bytes);
    }

    #[test]
    fn agrees_on_what_is_json(text in r#"[\[\]{}:,"\\a-f0-9tru\-. en]{0,12}"#) {
        let ours = Json::parse(text.as_bytes()).is_ok();
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        // The other library also refuses numbers that a float cannot hold.
        let too_large = theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
        prop_assert!(too_large || ours == theirs.is_ok(), "{:?}: {} {:?}", text, ours, theirs);
    }
}
