//! One line of a ledger: the JSON of a charge whose last member is the CRC-32 of the JSON without
//! it.

use super::Charge;

const MEMBER: &str = ",\"crc32\":\"";

/// The line of a charge, with its end.
pub(super) fn encode(charge: &Charge) -> String {
    // A charge is numbers and short names: it always has a JSON form.
    let mut text = serde_json::to_string(charge).unwrap_or_default();
    let sum = crc32fast::hash(text.as_bytes());
    text.pop();
    format!("{text}{MEMBER}{sum:08x}\"}}\n")
}

/// The charge of a line without its end, or what is wrong with it.
pub(super) fn decode(line: &[u8]) -> Result<Charge, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let (body, sum) = text
        .rsplit_once(MEMBER)
        .and_then(|(body, rest)| Some((body, rest.strip_suffix("\"}")?)))
        .ok_or("it does not end in a checksum")?;
    let body = format!("{body}}}");
    let expected = format!("{:08x}", crc32fast::hash(body.as_bytes()));
    if sum != expected {
        return Err(format!("its checksum is {sum}, where {expected} is right"));
    }
    serde_json::from_str(&body).map_err(|error| error.to_string())
}
