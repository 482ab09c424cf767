use proptest::prelude::*;

use super::*;

fn part(kind: u16, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len() + 4).unwrap();
    [&kind.to_be_bytes()[..], &len.to_be_bytes(), body].concat()
}

fn text(kind: u16, text: &str) -> Vec<u8> {
    part(kind, &[text.as_bytes(), b"\0"].concat())
}

fn values(values: &[(u8, [u8; 8])]) -> Vec<u8> {
    let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
    body.extend(values.iter().map(|(kind, _)| kind));
    values.iter().for_each(|(_, bytes)| body.extend(bytes));
    part(6, &body)
}

fn packet() -> Vec<u8> {
    [
        text(0, "h1"),
        part(8, &(1_500_000_000u64 << 30 | 1 << 29).to_be_bytes()),
        part(9, &(10u64 << 30).to_be_bytes()),
        text(2, "load"),
        text(4, "load"),
        values(&[(1, 0.5f64.to_le_bytes()), (1, 1.5f64.to_le_bytes())]),
        text(2, "cpu"),
        text(3, "0"),
        text(4, "cpu"),
        text(5, "idle"),
        part(1, &7u64.to_be_bytes()),
        values(&[(2, (-3i64).to_be_bytes())]),
    ]
    .concat()
}

fn types() -> TypesDb {
    let mut types = TypesDb::default();
    types
        .add("# types\nload\tshort:GAUGE:0:5000, mid:GAUGE:0:5000\ncpu value:DERIVE:0:U\n")
        .unwrap();
    types
}

fn parsed(parser: &CollectdParser, packet: &[u8]) -> Result<(u64, String), PacketError> {
    let mut lines = Lines::default();
    let dropped = parser.parse(packet, &mut lines)?;
    Ok((dropped, String::from_utf8(lines.into_text()).unwrap()))
}

#[test]
fn numbers_are_split_or_joined() {
    let split = CollectdParser::new(types(), MultiValue::Split);
    let cpu = ",host=h1,instance=0,type=cpu,type_instance=idle value=-3.0 7000000000\n";
    let want = format!(
        "load_short,host=h1,type=load value=0.5 1500000000500000000\n\
         load_mid,host=h1,type=load value=1.5 1500000000500000000\ncpu_value{cpu}"
    );
    assert_eq!(parsed(&split, &packet()), Ok((0, want)));
    let join = CollectdParser::new(types(), MultiValue::Join);
    let want = format!("load,host=h1,type=load short=0.5,mid=1.5 1500000000500000000\ncpu{cpu}");
    assert_eq!(parsed(&join, &packet()), Ok((0, want)));
    let untyped = CollectdParser::default();
    assert!(parsed(&untyped, &packet()).unwrap().1.starts_with("load_0,host=h1,type=load value="));
}

#[test]
fn what_cannot_be_stored_is_counted() {
    let parser = CollectdParser::new(types(), MultiValue::Split);
    let at_nine = [part(1, &9u64.to_be_bytes()), text(2, "x")].concat();
    let good = [text(4, "cpu"), values(&[(3, 9u64.to_be_bytes())])].concat();
    let line = "x_value,type=cpu value=9.0 9000000000\n";
    let unknown = [text(4, "nosuch"), values(&[(0, [0; 8])])].concat();
    let few = [text(4, "load"), values(&[(0, [0; 8])])].concat();
    for bad in [unknown, few] {
        let packet = [at_nine.clone(), bad, good.clone()].concat();
        assert_eq!(parsed(&parser, &packet), Ok((1, line.to_owned())));
    }
    let nan = values(&[(1, f64::NAN.to_le_bytes()), (0, 4u64.to_be_bytes())]);
    let nan = [at_nine, text(4, "load"), nan].concat();
    let line = "x_mid,type=load value=4.0 9000000000\n".to_owned();
    assert_eq!(parsed(&parser, &nan), Ok((1, line)));
    let join = CollectdParser::new(types(), MultiValue::Join);
    assert_eq!(parsed(&join, &nan), Ok((1, String::new())));
    assert_eq!(parsed(&parser, &[text(2, "x"), good].concat()), Ok((1, String::new())));
}

#[test]
fn malformed_packets_give_nothing() {
    let parser = CollectdParser::new(types(), MultiValue::Split);
    for (tail, error) in [
        (vec![0], PacketError::Length),
        (vec![0, 0, 0, 3], PacketError::Length),
        (vec![0, 0, 0, 9, 1], PacketError::Length),
        (part(0, b"no end"), PacketError::Text),
        (part(0, b"\xff\0"), PacketError::Text),
        (part(1, &[1]), PacketError::Length),
        (part(1, &[0xff; 8]), PacketError::Time),
        (part(8, &[0xff; 8]), PacketError::Time),
        (part(6, &[0, 2, 1]), PacketError::Length),
        (values(&[(9, [0; 8])]), PacketError::Kind),
        (part(0x210, b"secret"), PacketError::Encrypted),
    ] {
        assert_eq!(parsed(&parser, &[packet(), tail].concat()), Err(error));
    }
    let signed = [part(0x200, &[7; 40]), packet()].concat();
    assert_eq!(parsed(&parser, &signed), parsed(&parser, &packet()));
}

#[test]
fn a_packet_becomes_only_so_much() {
    let longest = "x".repeat(packet::NAME_BYTES_MAX - 1);
    let too_long = text(2, &format!("{longest}x"));
    let parser = CollectdParser::default();
    assert_eq!(parsed(&parser, &[packet(), too_long].concat()), Err(PacketError::Text));
    let names = [0, 2, 3, 4, 5].map(|kind| text(kind, &longest)).concat();
    let head = [part(1, &9u64.to_be_bytes()), names].concat();
    let one = values(&[(1, 1.0f64.to_le_bytes())]);
    let several = values(&[(1, 1.0f64.to_le_bytes()); 4000]);
    for (lists, values_of_it) in [(one.repeat(4000), 4000), (several, 4000)] {
        let (dropped, lines) = parsed(&parser, &[head.clone(), lists].concat()).unwrap();
        let line = lines.lines().next().unwrap().len();
        assert!(lines.len() >= PACKET_LINES_BYTES_MAX, "{}", lines.len());
        assert!(lines.len() < PACKET_LINES_BYTES_MAX + 2 * line, "{}", lines.len());
        assert_eq!(dropped + lines.lines().count() as u64, values_of_it);
    }
}

#[test]
fn bad_types_are_refused() {
    for bad in ["load", "load x", "load x:GAUGE:0", "load x:WHAT:0:1", "load :GAUGE:0:1"] {
        assert!(TypesDb::default().add(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn damaged_packets_are_read_or_refused(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut packet = packet();
        let at = at.index(packet.len());
        packet[at] = byte;
        packet.truncate(cut.index(packet.len() + 1));
        for mode in [MultiValue::Split, MultiValue::Join] {
            let _ = CollectdParser::new(types(), mode).parse(&packet, &mut Lines::default());
        }
    }
}
