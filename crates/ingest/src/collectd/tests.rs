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

fn users() -> Users {
    let mut users = Users::default();
    users.add("# of the house\n\nalice: rabbit hole\nbob:b\n").unwrap();
    users
}

/// A signed packet, as the format says.
fn signed(user: &str, password: &str, parts: &[u8]) -> Vec<u8> {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(password.as_bytes()).unwrap();
    mac.update(user.as_bytes());
    mac.update(parts);
    let body = [&mac.finalize().into_bytes()[..], user.as_bytes()].concat();
    [part(0x200, &body), parts.to_vec()].concat()
}

/// An encrypted packet, as the format says.
fn encrypted(user: &str, password: &str, parts: &[u8]) -> Vec<u8> {
    use sha1::Digest;
    let key = sha2::Sha256::digest(password.as_bytes()).into();
    let iv = [7; 16];
    let mut secret = [&sha1::Sha1::digest(parts)[..], parts].concat();
    security::apply_keystream(&key, &iv, &mut secret);
    let user_len = u16::try_from(user.len()).unwrap().to_be_bytes();
    part(0x210, &[&user_len[..], user.as_bytes(), &iv, &secret].concat())
}

#[test]
fn the_cipher_is_the_published_one() {
    // NIST SP 800-38A, F.4.5, first block.
    let bytes = |text: u128| text.to_be_bytes();
    let key = [
        bytes(0x603d_eb10_15ca_71be_2b73_aef0_857d_7781),
        bytes(0x1f35_2c07_3b61_08d7_2d98_10a3_0914_dff4),
    ];
    let mut block = bytes(0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a);
    let iv = bytes(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
    security::apply_keystream(&key.concat().try_into().unwrap(), &iv, &mut block);
    assert_eq!(block, bytes(0xdc7e_84bf_da79_164b_7ecd_8486_985d_3860));
}

#[test]
fn only_values_that_are_secure_enough_are_stored() {
    use SecurityLevel::{Encrypt, None, Sign};
    let plain = CollectdParser::new(types(), MultiValue::Split);
    let all = parsed(&plain, &packet()).unwrap();
    let nothing = (2, String::new());
    let signed = signed("alice", "rabbit hole", &packet());
    let encrypted = encrypted("bob", "b", &packet());
    for (level, of_plain, of_signed) in
        [(None, &all, &all), (Sign, &nothing, &all), (Encrypt, &nothing, &nothing)]
    {
        let parser = plain.clone().secured(level, users());
        assert_eq!(parsed(&parser, &packet()).as_ref(), Ok(of_plain), "{level:?}");
        assert_eq!(parsed(&parser, &signed).as_ref(), Ok(of_signed), "{level:?}");
        assert_eq!(parsed(&parser, &encrypted).as_ref(), Ok(&all), "{level:?}");
        // What stands before the signature is not signed.
        let before = [packet(), signed.clone()].concat();
        let (dropped, lines) = parsed(&parser, &before).unwrap();
        let (of_before, more) = (of_plain.0 + of_signed.0, of_plain.1.clone() + &of_signed.1);
        assert_eq!((dropped, lines), (of_before, more), "{level:?}");
    }
    assert_eq!(parsed(&plain, &signed), Ok(all));
    assert_eq!(parsed(&plain, &encrypted), Err(PacketError::Encrypted));
}

#[test]
fn what_is_not_of_a_known_user_is_refused() {
    let parser =
        CollectdParser::new(types(), MultiValue::Split).secured(SecurityLevel::None, users());
    for (packet, error) in [
        (signed("alice", "b", &packet()), PacketError::Signature),
        (signed("carol", "rabbit hole", &packet()), PacketError::User),
        (encrypted("bob", "c", &packet()), PacketError::Signature),
        (encrypted("carol", "b", &packet()), PacketError::User),
        (part(0x200, &[1; 31]), PacketError::Length),
        (part(0x210, &[0, 9, 1]), PacketError::Length),
        (part(0x210, &[&[0, 1][..], b"b", &[0; 9]].concat()), PacketError::Length),
        (encrypted("bob", "b", &encrypted("bob", "b", &packet())), PacketError::Encrypted),
    ] {
        assert_eq!(parsed(&parser, &packet), Err(error));
    }
    for at in 0..4 {
        // Any byte that is changed is noticed: of the user, the signature, the secret, the parts.
        let mut packets =
            [signed("alice", "rabbit hole", &packet()), encrypted("bob", "b", &packet())];
        for packet in &mut packets {
            let at = 5 + at * (packet.len() - 6) / 3;
            packet[at] ^= 1;
            assert!(parsed(&parser, packet).is_err(), "{at}");
        }
    }
    assert!(Users::default().add("alice rabbit").unwrap_err().contains("line 1"));
    assert_eq!(format!("{:?}", users()), "Users(2)");
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
            let parser = CollectdParser::new(types(), mode);
            let _ = parser.parse(&packet, &mut Lines::default());
            let parser = parser.secured(SecurityLevel::None, users());
            let _ = parser.parse(&signed("bob", "b", &packet), &mut Lines::default());
            let _ = parser.parse(&encrypted("bob", "b", &packet), &mut Lines::default());
        }
    }
}
