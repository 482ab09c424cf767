//! The ten tags of a host, chosen by a hash of its number so that they need no memory.

use crate::random::hash;
use crate::text::push_int;

const REGIONS: [(&[u8], &[u8]); 9] = [
    (b"us-east-1", b"abce"),
    (b"us-west-1", b"ab"),
    (b"us-west-2", b"abc"),
    (b"eu-west-1", b"abc"),
    (b"eu-central-1", b"ab"),
    (b"ap-southeast-1", b"ab"),
    (b"ap-southeast-2", b"ab"),
    (b"ap-northeast-1", b"ac"),
    (b"sa-east-1", b"abc"),
];
const SYSTEMS: [&[u8]; 3] = [b"Ubuntu16.10", b"Ubuntu16.04LTS", b"Ubuntu15.10"];
const ARCHITECTURES: [&[u8]; 2] = [b"x64", b"x86"];
const TEAMS: [&[u8]; 4] = [b"SF", b"NYC", b"LON", b"CHI"];
const ENVIRONMENTS: [&[u8]; 3] = [b"production", b"staging", b"test"];

/// Appends `,hostname=...` and the other nine tags, in the order in which TSBS sends them.
pub(super) fn push_host_tags(out: &mut Vec<u8>, seed: u64, host: u64) {
    let mut bits = Bits(hash(seed ^ 0x7461_6773, host));
    let (region, zones) = REGIONS[bits.take(REGIONS.len())];
    out.extend_from_slice(b",hostname=host_");
    push_int(out, host as i64);
    out.extend_from_slice(b",region=");
    out.extend_from_slice(region);
    out.extend_from_slice(b",datacenter=");
    out.extend_from_slice(region);
    out.push(zones[bits.take(zones.len())]);
    out.extend_from_slice(b",rack=");
    push_int(out, bits.take(100) as i64);
    out.extend_from_slice(b",os=");
    out.extend_from_slice(SYSTEMS[bits.take(SYSTEMS.len())]);
    out.extend_from_slice(b",arch=");
    out.extend_from_slice(ARCHITECTURES[bits.take(ARCHITECTURES.len())]);
    out.extend_from_slice(b",team=");
    out.extend_from_slice(TEAMS[bits.take(TEAMS.len())]);
    out.extend_from_slice(b",service=");
    push_int(out, bits.take(20) as i64);
    out.extend_from_slice(b",service_version=");
    push_int(out, bits.take(2) as i64);
    out.extend_from_slice(b",service_environment=");
    out.extend_from_slice(ENVIRONMENTS[bits.take(ENVIRONMENTS.len())]);
}

/// Small draws out of one 64-bit hash; the nine draws above use 28 bits of it.
struct Bits(u64);

impl Bits {
    fn take(&mut self, bound: usize) -> usize {
        let taken = self.0 % bound as u64;
        self.0 /= bound as u64;
        taken as usize
    }
}
