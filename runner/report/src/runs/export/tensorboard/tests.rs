use super::super::fixture::{WRITTEN, run};
use super::*;

/// Computes CRC-32C bit by bit, independently of the crate's table.
fn crc32c(data: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
        }
    }
    !crc
}

/// Returns the data of each record, and checks its checksums.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let stored = |crc: u32| crc.rotate_left(17).wrapping_add(0xa282_ead8);
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        assert_eq!(number(&bytes[8..12]), stored(crc32c(&bytes[..8])));
        let data = &bytes[12..12 + length];
        assert_eq!(
            number(&bytes[12 + length..16 + length]),
            stored(crc32c(data))
        );
        found.push(data.to_vec());
        bytes = &bytes[16 + length..];
    }
    found
}

/// Vectors of RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
#[test]
fn checksums_are_those_of_the_standard() {
    for check in [CRC.checksum(&[0; 32]), crc32c(&[0; 32])] {
        assert_eq!(check, 0x8a91_36aa);
    }
    let ascending: Vec<u8> = (0..32).collect();
    assert_eq!(CRC.checksum(&ascending), 0x46dd_794e);
    assert_eq!(CRC.checksum(b"123456789"), 0xe306_9283);
}

#[test]
fn a_file_begins_with_its_version_and_has_an_event_a_round() {
    let lines = [
        r#"{"round":0,"epsilon":null,"test":{"accuracy":0.5},"seconds":2,
            "origin":{"test":"released"}}"#,
        r#"{"round":1,"epsilon":1.5,"test":{"accuracy":0.75},"seconds":4,
            "origin":{"test":"released"}}"#,
    ];
    let files = files(&[run("below/a", &lines)], Path::new("/out"));
    let started = WRITTEN - 4;
    let name = format!("below/a/events.out.tfevents.{started}.smolfed");
    assert_eq!(files[0].path, Path::new(&name));
    let records = records(&files[0].bytes);
    // Field 1, a double. Field 3, 13 bytes of text.
    assert_eq!(records[0][0], 0x09);
    assert_eq!(records[0][1..9], (started as f64).to_le_bytes());
    assert_eq!(records[0][9..11], [0x1a, 13]);
    assert_eq!(records[0][11..], *VERSION.as_bytes());
    let events: Vec<Event> = records
        .iter()
        .map(|r| Event::decode(r.as_slice()).unwrap())
        .collect();
    assert_eq!(events.len(), 2 + lines.len());
    let texts = events[1].summary.as_ref().unwrap();
    assert_eq!(texts.value[0].tag, "hyperparameters");
    let scalars = |event: &Event| -> Vec<(String, Option<f32>)> {
        let values = event.summary.clone().unwrap().value;
        values
            .into_iter()
            .map(|v| (v.tag, v.simple_value))
            .collect()
    };
    let expected = [
        ("epsilon", 1.5),
        ("provenance_unknown/seconds", 4.0),
        ("test/accuracy", 0.75),
    ];
    let expected = expected.map(|(tag, value)| (tag.to_owned(), Some(value)));
    assert_eq!(scalars(&events[3]), expected);
    assert_eq!(scalars(&events[2])[0].1, Some(f32::INFINITY));
    assert_eq!((events[3].step, events[3].wall_time), (1, WRITTEN as f64));
}

#[test]
fn the_configuration_is_a_table() {
    let of = run("a", &[]);
    let text = hyperparameters(&of.run);
    assert!(
        text.starts_with("| key | value |\n| --- | --- |\n"),
        "{text}"
    );
    assert!(text.contains("| method | dp-fed-ls |\n"), "{text}");
}
