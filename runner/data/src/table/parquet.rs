//! Parquet, a table by columns, read row by row.
//!
//! Source: <https://parquet.apache.org/docs/file-format/>. Uncompressed, Snappy and gzip columns of
//! numbers, booleans, text, dates and timestamps. Nested columns are refused.

use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Once;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use csv::StringRecord;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;

use super::error::TableError;
use super::rows::Rows;
use super::text::PARQUET;
use crate::column::place::Place;

const SECONDS_PER_DAY: u64 = 86_400;

/// A file of this format.
pub(super) struct Parquet {
    header: StringRecord,
    /// Whether a column counts nanoseconds, which the reader does not support.
    is_nanoseconds: Vec<bool>,
    /// Whether a column has points in time in UTC.
    is_utc: Vec<bool>,
    rows: RowIter<'static>,
    row: u32,
}

/// Reads the description of the columns.
pub(super) fn read(bytes: &[u8]) -> Result<Parquet, TableError> {
    if !bytes.starts_with(PARQUET) {
        let advice = "is not a Parquet file; `data.source = \"csv\"` reads tables of text";
        return Err(TableError::Binary { advice });
    }
    let bytes = Bytes::copy_from_slice(bytes);
    let reader = guarded(|| SerializedFileReader::new(bytes))?;
    let schema = reader.metadata().file_metadata().schema().clone();
    let is_nanoseconds = |column: &parquet::schema::types::TypePtr| {
        let kind = column.get_basic_info().logical_type_ref();
        matches!(kind, Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS)
    };
    let is_utc = |column: &parquet::schema::types::TypePtr| {
        let kind = column.get_basic_info().logical_type_ref();
        matches!(kind, Some(LogicalType::Timestamp(time)) if time.is_adjusted_to_u_t_c)
    };
    Ok(Parquet {
        is_utc: schema.get_fields().iter().map(is_utc).collect(),
        header: schema
            .get_fields()
            .iter()
            .map(|column| column.name())
            .collect(),
        is_nanoseconds: schema.get_fields().iter().map(is_nanoseconds).collect(),
        rows: RowIter::from_file_into(Box::new(reader)),
        row: 0,
    })
}

impl Rows for Parquet {
    fn header(&self) -> &StringRecord {
        &self.header
    }

    fn next(&mut self, cells: &mut StringRecord) -> Result<Option<Place>, TableError> {
        let Some(row) = guarded(|| self.rows.next().transpose())? else {
            return Ok(None);
        };
        self.row += 1;
        let place = Place::Row(self.row);
        cells.clear();
        for ((name, field), is_nanoseconds) in row.get_column_iter().zip(&self.is_nanoseconds) {
            let text = text(field, *is_nanoseconds).ok_or_else(|| TableError::Format {
                place,
                what: format!(
                    "the column `{name}` holds lists or tables: write one column for each value"
                ),
            })?;
            cells.push_field(&text);
        }
        Ok(Some(place))
    }

    fn is_utc(&self, column: usize) -> bool {
        self.is_utc.get(column).copied().unwrap_or(false)
    }

    fn layout(&self) -> String {
        "Parquet".to_owned()
    }
}

/// Returns a cell as text. `None` for a nested table.
fn text(field: &Field, is_nanoseconds: bool) -> Option<String> {
    Some(match field {
        Field::Null => String::new(),
        Field::Bool(value) => value.to_string(),
        Field::Long(value) if is_nanoseconds => time(value.div_euclid(1000)),
        Field::Byte(value) => value.to_string(),
        Field::Short(value) => value.to_string(),
        Field::Int(value) => value.to_string(),
        Field::Long(value) => value.to_string(),
        Field::UByte(value) => value.to_string(),
        Field::UShort(value) => value.to_string(),
        Field::UInt(value) => value.to_string(),
        Field::ULong(value) => value.to_string(),
        Field::Float16(value) => value.to_string(),
        // The shortest text that parses to the same number.
        Field::Float(value) => value.to_string(),
        Field::Double(value) => value.to_string(),
        Field::Str(value) => value.trim().to_owned(),
        Field::Bytes(value) => String::from_utf8_lossy(value.data()).trim().to_owned(),
        Field::Date(days) => {
            let time = time(i64::from(*days) * SECONDS_PER_DAY.cast_signed() * 1_000_000);
            time.split('T').next()?.to_owned()
        }
        Field::TimestampMillis(value) => time(value.saturating_mul(1000)),
        Field::TimestampMicros(value) => time(*value),
        Field::Decimal(_) | Field::TimeMillis(_) | Field::TimeMicros(_) => field.to_string(),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => return None,
    })
}

/// Formats microseconds since 1970 as a date and time. Earlier or out-of-range values stay numbers.
fn time(micros: i64) -> String {
    let since = u64::try_from(micros).ok().map(Duration::from_micros);
    let time: Option<SystemTime> = since.and_then(|since| UNIX_EPOCH.checked_add(since));
    // The year 10,000 and later ones have no such form.
    let last = Duration::from_secs(8000 * 365 * SECONDS_PER_DAY);
    match time.filter(|_| since.is_some_and(|since| since < last)) {
        Some(time) => humantime::format_rfc3339_micros(time).to_string(),
        None => micros.to_string(),
    }
}

/// Runs the reader, which panics on some malformed files. Such a panic becomes an error of the
/// file, and is not printed.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, TableError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or("", Location::file);
            if !place.contains("/parquet-") {
                usual(panic);
            }
        }));
    });
    // A reader is not used again after a panic.
    match panic::catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(refuse),
        Err(_) => Err(TableError::Other("the file is malformed".to_owned())),
    }
}

fn refuse(error: ParquetError) -> TableError {
    let what = error.to_string();
    let advice = match what.contains("feature") {
        true => "; write it with the compression snappy, gzip or none",
        false => "",
    };
    TableError::Other(format!("{what}{advice}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::*;

    /// Returns a file with two rows: a number, text that may be missing, a boolean and a timestamp
    /// in nanoseconds.
    fn file() -> Vec<u8> {
        let schema = "message table { required double x; optional binary name (UTF8);
            required boolean is_on; required int64 at (TIMESTAMP(NANOS,false)); }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        macro_rules! column {
            ($kind:ty, $values:expr, $levels:expr) => {
                let mut column = group.next_column().unwrap().unwrap();
                let values = column.typed::<$kind>();
                values.write_batch($values, $levels, None).unwrap();
                column.close().unwrap();
            };
        }
        column!(DoubleType, &[0.1, f64::NAN], None);
        column!(ByteArrayType, &[ByteArray::from("red")], Some(&[1, 0]));
        column!(BoolType, &[true, false], None);
        column!(Int64Type, &[0, 1_795_372_200_000_000_000], None);
        group.close().unwrap();
        writer.close().unwrap();
        bytes
    }

    fn cells(bytes: &[u8]) -> Result<Vec<Vec<String>>, TableError> {
        let mut rows = read(bytes)?;
        let (mut cells, mut found) = (StringRecord::new(), Vec::new());
        while rows.next(&mut cells)?.is_some() {
            found.push(cells.iter().map(str::to_owned).collect());
        }
        Ok(found)
    }

    #[test]
    fn values_become_cells() {
        let rows = read(&file()).unwrap();
        assert_eq!(
            rows.header(),
            &StringRecord::from(vec!["x", "name", "is_on", "at"])
        );
        let expected = [
            ["0.1", "red", "true", "1970-01-01T00:00:00.000000Z"],
            ["NaN", "", "false", "2026-11-22T18:30:00.000000Z"],
        ];
        assert_eq!(cells(&file()).unwrap(), expected);
    }

    #[test]
    fn files_cut_short_are_refused() {
        let file = file();
        for length in (4..file.len()).step_by(7) {
            assert!(cells(&file[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        /// Damage anywhere causes an error or changed content, never a panic.
        #[test]
        fn damaged_files_do_not_panic(position in 0usize..10_000, bit in 0u8..8) {
            let mut file = file();
            let position = position % file.len();
            file[position] ^= 1 << bit;
            let _ = cells(&file);
        }
    }
}
