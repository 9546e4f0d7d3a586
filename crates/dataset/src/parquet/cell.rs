//! Single values of Parquet columns as JSON.
//!
//! Nothing is lost: numbers that JSON does not have become the texts `NaN`, `Infinity` and `-Infinity`,
//! decimals their digits, dates and times ISO 8601, and bytes that are no text an object that holds them
//! as `base64`.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{Timestamp, civil::Time, tz::TimeZone};
use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit},
    data_type::Int96,
    errors::ParquetError,
    schema::types::ColumnDescPtr,
};
use serde_json::{Number, Value, json};

use super::read::damage;

pub(super) fn of_int32(value: i32, column: &ColumnDescPtr) -> Result<Value, ParquetError> {
    match meaning(column) {
        Meaning::Unsigned => Ok(json!(value.cast_unsigned())),
        Meaning::Date => date(value),
        meaning => of_integer(i64::from(value), meaning),
    }
}

pub(super) fn of_int64(value: i64, column: &ColumnDescPtr) -> Result<Value, ParquetError> {
    match meaning(column) {
        Meaning::Unsigned => Ok(json!(value.cast_unsigned())),
        meaning => of_integer(value, meaning),
    }
}

fn of_integer(value: i64, meaning: Meaning) -> Result<Value, ParquetError> {
    match meaning {
        Meaning::Decimal { scale } => Ok(decimal(i128::from(value), scale).into()),
        Meaning::Time { unit } => time(value, unit),
        Meaning::Timestamp { unit, is_utc } => timestamp(i128::from(value) * per(unit), is_utc),
        _ => Ok(json!(value)),
    }
}

/// Nanoseconds of a day and a Julian day, as old writers keep time.
pub(super) fn of_int96(value: &Int96) -> Result<Value, ParquetError> {
    const JULIAN_DAY_OF_EPOCH: i128 = 2_440_588;
    const NANOSECONDS_OF_DAY: i128 = 86_400_000_000_000;
    let [low, high, day] = *value.data() else {
        return Err(damage("an int96 of a wrong length"));
    };
    let of_day = i128::from(u64::from(high) << 32 | u64::from(low));
    timestamp(
        (i128::from(day) - JULIAN_DAY_OF_EPOCH) * NANOSECONDS_OF_DAY + of_day,
        false,
    )
}

pub(super) fn of_float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => number.into(),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

pub(super) fn of_bytes(bytes: &[u8], column: &ColumnDescPtr) -> Result<Value, ParquetError> {
    match (meaning(column), bytes) {
        (Meaning::Decimal { scale }, bytes) if (1..=16).contains(&bytes.len()) => {
            let sign = if bytes[0] & 0x80 == 0 { 0 } else { -1 };
            let unscaled = bytes
                .iter()
                .fold(sign, |sum: i128, byte| (sum << 8) | i128::from(*byte));
            Ok(decimal(unscaled, scale).into())
        }
        (Meaning::Uuid, bytes) if bytes.len() == 16 => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let parts = [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..],
            ];
            Ok(parts.join("-").into())
        }
        (Meaning::Float16, [low, high]) => {
            Ok(of_float(half::f16::from_le_bytes([*low, *high]).to_f64()))
        }
        (Meaning::Text, bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(damage(&format!(
                "a text of column `{}` is not UTF-8",
                column.path().string()
            ))),
        },
        (_, bytes) => Ok(match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => json!({ "base64": BASE64_STANDARD.encode(bytes) }),
        }),
    }
}

/// What stands behind a physical type. Old writers say it by the converted type alone.
#[derive(Clone, Copy)]
enum Meaning {
    Plain,
    Text,
    Unsigned,
    Decimal { scale: i32 },
    Date,
    Time { unit: TimeUnit },
    Timestamp { unit: TimeUnit, is_utc: bool },
    Uuid,
    Float16,
}

fn meaning(column: &ColumnDescPtr) -> Meaning {
    match column.logical_type_ref() {
        Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => return Meaning::Text,
        Some(LogicalType::Integer(integer)) if !integer.is_signed => return Meaning::Unsigned,
        Some(LogicalType::Decimal(decimal)) => {
            return Meaning::Decimal {
                scale: decimal.scale,
            };
        }
        Some(LogicalType::Date) => return Meaning::Date,
        Some(LogicalType::Time(time)) => return Meaning::Time { unit: time.unit },
        Some(LogicalType::Timestamp(timestamp)) => {
            return Meaning::Timestamp {
                unit: timestamp.unit,
                is_utc: timestamp.is_adjusted_to_u_t_c,
            };
        }
        Some(LogicalType::Uuid) => return Meaning::Uuid,
        Some(LogicalType::Float16) => return Meaning::Float16,
        _ => {}
    }
    let timestamp = |unit| Meaning::Timestamp { unit, is_utc: true };
    match column.converted_type() {
        ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Meaning::Text,
        ConvertedType::UINT_8
        | ConvertedType::UINT_16
        | ConvertedType::UINT_32
        | ConvertedType::UINT_64 => Meaning::Unsigned,
        ConvertedType::DECIMAL => Meaning::Decimal {
            scale: column.type_scale(),
        },
        ConvertedType::DATE => Meaning::Date,
        ConvertedType::TIME_MILLIS => Meaning::Time {
            unit: TimeUnit::MILLIS,
        },
        ConvertedType::TIME_MICROS => Meaning::Time {
            unit: TimeUnit::MICROS,
        },
        ConvertedType::TIMESTAMP_MILLIS => timestamp(TimeUnit::MILLIS),
        ConvertedType::TIMESTAMP_MICROS => timestamp(TimeUnit::MICROS),
        _ => Meaning::Plain,
    }
}

/// Nanoseconds in a unit.
fn per(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1,
    }
}

/// `unscaled * 10^-scale`, digit by digit.
fn decimal(unscaled: i128, scale: i32) -> String {
    let scale = usize::try_from(scale).unwrap_or(0);
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let sign = if unscaled < 0 { "-" } else { "" };
    match digits.split_at(digits.len() - scale) {
        (whole, "") => format!("{sign}{whole}"),
        (whole, part) => format!("{sign}{whole}.{part}"),
    }
}

fn date(days: i32) -> Result<Value, ParquetError> {
    let seconds = i64::from(days) * 86_400;
    let midnight = Timestamp::from_second(seconds).map_err(|_| damage("a date out of range"))?;
    Ok(TimeZone::UTC
        .to_datetime(midnight)
        .date()
        .to_string()
        .into())
}

fn time(value: i64, unit: TimeUnit) -> Result<Value, ParquetError> {
    let out_of_range = || damage("a time of day out of range");
    let nanoseconds = i64::try_from(i128::from(value) * per(unit)).map_err(|_| out_of_range())?;
    let span = jiff::SignedDuration::from_nanos(nanoseconds);
    let time = Time::midnight()
        .checked_add(span)
        .map_err(|_| out_of_range())?;
    Ok(time.to_string().into())
}

fn timestamp(nanoseconds: i128, is_utc: bool) -> Result<Value, ParquetError> {
    let timestamp = Timestamp::from_nanosecond(nanoseconds)
        .map_err(|_| damage("a point in time out of range"))?;
    Ok(if is_utc {
        timestamp.to_string().into()
    } else {
        TimeZone::UTC.to_datetime(timestamp).to_string().into()
    })
}
