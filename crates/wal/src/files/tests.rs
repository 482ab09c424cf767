use super::*;

#[test]
fn only_names_the_log_would_give_are_taken() {
    assert_eq!(Name::parse("00000001.log"), Some(Name::Log(1)));
    assert_eq!(Name::parse("00000042.spare"), Some(Name::Spare(42)));
    assert_eq!(Name::parse("123456789.log"), Some(Name::Log(123_456_789)));
    for other in [
        "18446744073709551615.log",
        "1.log",
        "000000001.log",
        "+0000001.log",
        "00000001.log.log",
        "00000001",
        ".log",
        "a.log",
    ] {
        assert_eq!(Name::parse(other), None, "{other}");
    }
}
