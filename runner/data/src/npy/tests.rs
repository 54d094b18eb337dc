use proptest::prelude::*;

use super::*;

/// Creates a file in the form of `numpy.save` (version 1.0).
fn file(kind: &str, is_fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}");
    of_header(&format!("{header:<117}\n"), values)
}

/// Creates a file of version 1.0 with this header.
fn of_header(header: &str, values: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [MAGIC, &[1, 0], &length, header.as_bytes(), values].concat()
}

fn refusal(bytes: &[u8]) -> String {
    parse(bytes).unwrap_err().to_string()
}

#[test]
fn numbers_of_all_types_are_read() {
    let read = |kind: &str, values: &[u8]| {
        let array = parse(&file(kind, false, "(2,)", values)).unwrap();
        array.numbers().collect::<Vec<_>>()
    };
    assert_eq!(read("|b1", &[1, 0]), [1.0, 0.0]);
    assert_eq!(read("|i1", &[255, 1]), [-1.0, 1.0]);
    assert_eq!(read(">u2", &[1, 0, 0, 2]), [256.0, 2.0]);
    assert_eq!(read("<i4", &[254, 255, 255, 255, 7, 0, 0, 0]), [-2.0, 7.0]);
    let floats: Vec<u8> = [0.5f64, -3.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    assert_eq!(read("<f8", &floats), [0.5, -3.0]);
}

#[test]
fn large_numbers_keep_the_digits_that_features_have_no_room_for() {
    let large = [1.7e12 + 123.0, -45_292.51];
    let values = [large[0], 0.1, f64::NAN, f64::INFINITY, large[1], 65_536.0];
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let array = parse(&file("<f8", false, "(2, 3)", &bytes)).unwrap();
    let (features, rests) = (array.features(), array.rests());
    let places: Vec<usize> = rests.iter().map(|rest| rest.0).collect();
    assert_eq!(places, [0, 4]);
    for ((place, rest), value) in rests.into_iter().zip(large) {
        assert_ne!(f64::from(features.get(place)), value);
        assert_eq!(f64::from(features.get(place)) + rest, value);
    }
    let bytes = parse(&file("|u1", false, "(2, 2)", &[0, 255, 7, 8])).unwrap();
    assert!(bytes.rests().is_empty());
}

#[test]
fn bytes_stay_bytes_with_their_shape() {
    let array = parse(&file("|u1", false, "(2, 1, 2)", &[0, 255, 3, 4])).unwrap();
    assert_eq!(array.dimensions(), [2, 1, 2]);
    assert_eq!(array.bytes(), Some(&[0, 255, 3, 4][..]));
}

#[test]
fn fortran_order_becomes_c_order() {
    // np.arange(12).reshape(2, 3, 2), saved as np.asfortranarray(..).
    let saved = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11];
    let array = parse(&file("|u1", true, "(2, 3, 2)", &saved)).unwrap();
    let expected: Vec<u8> = (0..12).collect();
    assert_eq!(array.bytes(), Some(&expected[..]));
}

#[test]
fn columns_of_one_are_entries() {
    let array = parse(&file("|u1", false, "(3, 1)", &[0, 2, 1])).unwrap();
    assert_eq!(array.indices(9).unwrap(), [0, 2, 1]);
    assert!(
        array
            .indices(1)
            .unwrap_err()
            .to_string()
            .contains("entry 1 is 2")
    );
    let matrix = parse(&file("|u1", false, "(1, 3)", &[0, 2, 1])).unwrap();
    assert!(matrix.entries().is_err());
}

#[test]
fn what_cannot_be_read_is_refused() {
    for (bytes, words) in [
        (b"numpy".to_vec(), "does not begin"),
        (file("<U3", false, "(1,)", &[0; 12]), "np.unique"),
        (file("|O", false, "(1,)", &[0; 12]), "type"),
        (file("|u1", false, "(2, 0)", &[]), "no values"),
        (file("|u1", false, "()", &[1]), "no values"),
        (file("|u1", false, "(400,)", &[0; 4]), "needs more values"),
        (
            file("<f8", false, "(99999999999, 9999)", &[]),
            "needs more values",
        ),
    ] {
        let error = parse(&bytes).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// `np.array([1.0, 2.0, 3.0])`, by NumPy 1.13: headers fill multiples of 16 bytes.
const OF_1_13: &[u8] = b"\x93NUMPY\x01\x00F\x00{'descr': '<f8', 'fortran_order': False, \
    'shape': (3,), }            \n\
    \x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00@\x00\x00\x00\x00\x00\x00\x08@";
/// `np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3))`, by NumPy 1.26 and 2.3.
const FORTRAN: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '>f4', 'fortran_order': True, \
    'shape': (2, 3), }                                                           \n\
    \x00\x00\x00\x00@@\x00\x00?\x80\x00\x00@\x80\x00\x00@\x00\x00\x00@\xa0\x00\x00";
/// `np.array([[True, False], [False, True]])`, by `write_array` with the version 2.0.
const OF_VERSION_2: &[u8] = b"\x93NUMPY\x02\x00t\x00\x00\x00{'descr': '|b1', 'fortran_order': \
    False, 'shape': (2, 2), }                                                        \n\
    \x01\x00\x00\x01";
/// `np.array([1, -2], dtype="<i2")`, by `write_array` with the version 3.0.
const OF_VERSION_3: &[u8] = b"\x93NUMPY\x03\x00t\x00\x00\x00{'descr': '<i2', 'fortran_order': \
    False, 'shape': (2,), }                                                          \n\
    \x01\x00\xfe\xff";

#[test]
fn files_of_numpy_are_read() {
    for (bytes, dimensions, numbers) in [
        (OF_1_13, &[3][..], &[1.0, 2.0, 3.0][..]),
        (FORTRAN, &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (OF_VERSION_2, &[2, 2], &[1.0, 0.0, 0.0, 1.0]),
        (OF_VERSION_3, &[2], &[1.0, -2.0]),
    ] {
        let array = parse(bytes).unwrap();
        assert_eq!(array.dimensions(), dimensions);
        assert_eq!(array.numbers().collect::<Vec<_>>(), numbers);
        // Bytes after the values are ignored.
        let longer = parse(&[bytes, b"more"].concat()).unwrap();
        assert_eq!(longer.numbers().collect::<Vec<_>>(), numbers);
    }
}

#[test]
fn refusals_name_type_and_shape() {
    // np.array(["walk", "sit"]) and np.array(True), by NumPy 1.26 and 2.3.
    let text = b"\x93NUMPY\x01\x00v\x00{'descr': '<U4', 'fortran_order': False, 'shape': (2,), }\
        \x20                                                           \n\
        w\0\0\0a\0\0\0l\0\0\0k\0\0\0s\0\0\0i\0\0\0t\0\0\0\0\0\0\0";
    let scalar = b"\x93NUMPY\x01\x00v\x00{'descr': '|b1', 'fortran_order': False, 'shape': (), }\
        \x20                                                             \n\x01";
    let list = "[('a', '<i4'), ('b', '<f4', (2, 3))]";
    let header = format!("{{'descr': {list}, 'fortran_order': False, 'shape': (1,), }}\n");
    for (bytes, words) in [
        (text.to_vec(), "holds values of the type '<U4'; only"),
        (scalar.to_vec(), "has the shape []: it contains"),
        (of_header(&header, &[0; 28]), list),
        (file("|O", false, "(1,)", &[0; 8]), "the type '|O'; only"),
        (file("<f16", false, "(1,)", &[0; 16]), "the type <f16; only"),
        (file("|b1", false, "(1,)", &[2]), "value for bool: 2"),
    ] {
        let refusal = refusal(&bytes);
        assert!(refusal.contains(words), "{refusal}");
    }
}

#[test]
fn numbers_of_16_bits_are_read() {
    // np.array([1, -2, 65504, 2**-24, 1.0009765625, np.inf], np.float16), and backwards.
    let bits: [u16; 6] = [0x3c00, 0xc000, 0x7bff, 0x0001, 0x3c01, 0x7c00];
    let expected = [
        1.0,
        -2.0,
        65_504.0,
        2f64.powi(-24),
        1.000_976_562_5,
        f64::INFINITY,
    ];
    for (kind, bytes) in [
        ("<f2", bits.map(u16::to_le_bytes)),
        (">f2", bits.map(u16::to_be_bytes)),
    ] {
        let array = parse(&file(kind, false, "(6,)", &bytes.concat())).unwrap();
        assert!(array.numbers().eq(expected), "{kind}");
    }
    let array = parse(&file("<f2", false, "(1,)", &0x7e00u16.to_le_bytes())).unwrap();
    assert!(array.numbers().all(f64::is_nan));
}

#[test]
fn lengths_are_checked_before_anything_is_allocated() {
    for shape in [
        "(18446744073709551615, 2)",
        "(18446744073709551615, 18446744073709551615)",
        "(2305843009213693952,)",
        "(2,)",
    ] {
        let refusal = refusal(&file("<f8", false, shape, &[0; 15]));
        assert!(refusal.contains("] needs more values)"), "{refusal}");
    }
    let mut long = OF_VERSION_2.to_vec();
    long[10] = 1;
    assert!(refusal(&long).contains("of 65652 bytes is longer than 65536"));
    long[6] = 4;
    assert!(refusal(&long).contains("unsupported version: (4, 0)"));
}

#[test]
fn every_cut_of_a_file_is_refused() {
    for bytes in [OF_1_13, FORTRAN, OF_VERSION_2, OF_VERSION_3] {
        for length in 0..bytes.len() {
            let refusal = refusal(&bytes[..length]);
            assert!(refusal.starts_with("is not a NumPy array ("), "{refusal}");
        }
    }
}

proptest! {
    /// Damage anywhere causes an error or gives some array, never a panic.
    #[test]
    fn damaged_files_do_not_panic(position in 0usize..140, byte: u8) {
        let mut bytes = file("<f4", false, "(2, 2)", &[0; 16]);
        let position = position % bytes.len();
        bytes[position] = byte;
        let _ = parse(&bytes);
    }

    /// Arrays of any type, shape and order are read completely, and truncated ones are refused.
    #[test]
    fn cut_files_are_refused(
        (kind, size) in prop::sample::select(vec![("|b1", 1), ("<u2", 2), (">f4", 4), ("<i8", 8)]),
        shape in prop::collection::vec(1usize..5, 1..4),
        is_fortran: bool,
        cut: prop::sample::Index,
    ) {
        let count: usize = shape.iter().product();
        let python: String = shape.iter().map(|length| format!("{length},")).collect();
        let bytes = file(kind, is_fortran, &format!("({python})"), &vec![0; count * size]);
        let array = parse(&bytes).unwrap();
        prop_assert_eq!(array.dimensions(), shape);
        prop_assert_eq!(array.numbers().count(), count);
        prop_assert!(parse(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn random_bytes_do_not_panic(
        begin in prop::sample::select(vec![
            &b""[..], MAGIC, b"\x93NUMPY\x01\0\x20\0", b"\x93NUMPY\x02\0\x20\0\0\0",
        ]),
        bytes: Vec<u8>,
    ) {
        let _ = parse(&[begin, &bytes].concat());
    }

    #[test]
    fn random_headers_do_not_panic(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "(", ")", "[", "]", ",", ":", " ", "\n", "'", "\"", "\\", "é", "-", "1",
                "2.5", "True", "False", "'descr'", "'fortran_order'", "'shape'", "'<f4'", "'<U9'",
                "'descr': '<f4'", "'fortran_order': True", "'shape': (2, 3)", "'descr': [('a',",
                "99999999999999999999",
            ]),
            0..12,
        ),
    ) {
        let inside = format!("{{{}}}", parts.concat());
        let _ = parse(&of_header(&inside, &[0; 24]));
        let _ = parse(&of_header(&parts.concat(), &[0; 24]));
    }
}
