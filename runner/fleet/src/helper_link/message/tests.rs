use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn listed() -> impl Strategy<Value = Listed> {
    (any::<u32>(), any::<[u8; 8]>(), any::<[u8; 16]>()).prop_map(|(device, ledger, tag)| Listed {
        device,
        ledger,
        tag,
    })
}

prop_compose! {
    fn requests()(
        round: u32, entries: u32, numbers: [u8; 3], invitation in vec(any::<u8>(), 0..90),
        model in vec(-1e3f32..1e3, 0..40), devices in vec(listed(), 0..9),
        earlier in vec(any::<u32>(), 0..4),
    ) -> HelperRequest {
        let [grid_bits, width, helpers] = numbers;
        let terms = Terms { grid_bits, width, helpers };
        HelperRequest { round, terms, invitation, model, entries, devices, earlier }
    }
}

proptest! {
    #[test]
    fn questions_are_read_as_they_were_written(
        request in requests(), cut in any::<prop::sample::Index>(),
    ) {
        let question = Question::Request(request);
        let bytes = question.to_bytes();
        prop_assert_eq!(Question::parse(&bytes), Ok(question));
        prop_assert_eq!(Question::parse(&bytes[..cut.index(bytes.len())]), Err(Malformed));
        prop_assert_eq!(Question::parse(&[bytes, vec![0]].concat()), Err(Malformed));
    }

    #[test]
    fn answers_are_read_as_they_were_written(
        round: u32, width in 1u8..=57, integers in vec(any::<u64>(), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let integers = integers.iter().map(|x| (x & ((1 << width) - 1)).cast_signed());
        let answer = HelperAnswer { round, integers: integers.collect() };
        let reply = Reply::Answer(answer, width);
        let bytes = reply.to_bytes();
        prop_assert_eq!(Reply::parse(&bytes), Ok(reply));
        prop_assert_eq!(Reply::parse(&bytes[..cut.index(bytes.len())]), Err(Malformed));
    }

    /// Arbitrary bytes from a peer with the key.
    #[test]
    fn no_bytes_make_the_parsers_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = (Question::parse(&bytes), Reply::parse(&bytes));
    }
}

#[test]
fn other_messages_are_read_as_they_were_written() {
    for question in [Question::Hello([7; 16]), Question::Ask] {
        assert_eq!(Question::parse(&question.to_bytes()), Ok(question));
    }
    let state = HelperState {
        last: Some(3),
        rounds_left: 9,
        devices: 4,
        min_cohort: 2,
        helpers: 1,
        noise_multiplier: 1.25,
        coefficients: vec![256, -128],
    };
    let unused = HelperState::default();
    for reply in [
        Reply::State(state),
        Reply::State(unused),
        Reply::Refusal(HelperRefusal::Tag { device: 7 }),
        Reply::Busy,
        Reply::Failed,
    ] {
        assert_eq!(Reply::parse(&reply.to_bytes()), Ok(reply));
    }
    for bytes in [&[][..], &[0], &[9], &[1, 0], &[200], &[131, b'{']] {
        assert_eq!(Question::parse(bytes), Err(Malformed));
        assert_eq!(Reply::parse(bytes), Err(Malformed));
    }
}

/// A list that claims to have four billion elements.
#[test]
fn a_length_is_not_believed() {
    let mut bytes = vec![kind::REQUEST];
    bytes.extend([0; 4 + 3 + 4]);
    bytes.extend([0xff; 4]);
    assert_eq!(Question::parse(&bytes), Err(Malformed));
}
