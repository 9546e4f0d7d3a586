//! Rows to a Parquet file.

use std::{path::Path, sync::Arc};

use parquet::{
    basic::{Compression, ZstdLevel},
    column::writer::ColumnWriter,
    errors::ParquetError,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::Type,
};
use serde_json::{Map, Value};

use super::{
    columns::{self, Misfit, Shape},
    shred::{Leaf, Level, Values, leaves_of, shred_fields},
};
use crate::{atomic::Unfinished, error::DatasetError};

/// Rows that are taken apart at a time.
const GROUP: usize = 1024;

/// Writes rows as a Parquet file, lists and objects as nested columns, in the order in which names are
/// first met. A field that some rows lack is null in them. Columns named in `json_columns` are stored as
/// JSON text, whatever they hold; null stays null. The file is there, whole, when this has returned.
///
/// # Errors
/// Values of one column that fit into no common type (a number is no text; whole and other numbers
/// go together), an object without fields, no rows or no columns, a full disk.
pub fn write_parquet(
    path: &Path,
    rows: &[Map<String, Value>],
    json_columns: &[&str],
) -> Result<(), DatasetError> {
    let packed: Vec<Map<String, Value>>;
    let rows = if json_columns.is_empty() {
        rows
    } else {
        packed = rows.iter().map(|row| pack(row, json_columns)).collect();
        &packed
    };

    let mut fields: Vec<(String, Shape)> = Vec::new();
    let misfit = |row: usize, misfit: Misfit| DatasetError::Column {
        path: path.to_owned(),
        row: row as u64 + 1,
        column: misfit.column,
        message: misfit.message,
    };
    for (index, row) in rows.iter().enumerate() {
        columns::widen_fields(&mut fields, row, "").map_err(|found| misfit(index, found))?;
    }
    if fields.is_empty() {
        return Err(DatasetError::NothingToWrite {
            path: path.to_owned(),
        });
    }
    for (name, shape) in &fields {
        shape.check(name).map_err(|found| misfit(0, found))?;
    }
    let file = Unfinished::create(path)?;
    let file = write(file, rows, &fields)
        .map_err(|error| DatasetError::unwritable(path)(std::io::Error::other(error)))?;
    file.finish()
}

fn pack(row: &Map<String, Value>, json_columns: &[&str]) -> Map<String, Value> {
    row.iter()
        .map(|(name, value)| {
            let value = match value {
                Value::Null => Value::Null,
                value if json_columns.contains(&name.as_str()) => value.to_string().into(),
                value => value.clone(),
            };
            (name.clone(), value)
        })
        .collect()
}

fn write(
    file: Unfinished,
    rows: &[Map<String, Value>],
    fields: &[(String, Shape)],
) -> Result<Unfinished, ParquetError> {
    let schema = Type::group_type_builder("schema")
        .with_fields(columns::types_of(fields)?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by("etude".to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    for rows in rows.chunks(GROUP) {
        let mut leaves = Vec::new();
        for (_, shape) in fields {
            leaves_of(shape, &mut leaves);
        }
        for row in rows {
            shred_fields(row, fields, Level::ROW, &mut leaves);
        }
        let mut group = writer.next_row_group()?;
        for leaf in &leaves {
            let Some(mut column) = group.next_column()? else {
                return Err(ParquetError::General(
                    "fewer columns than leaves".to_owned(),
                ));
            };
            write_column(column.untyped(), leaf)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.into_inner()
}

fn write_column(column: &mut ColumnWriter<'_>, leaf: &Leaf) -> Result<usize, ParquetError> {
    let definitions = Some(leaf.definitions.as_slice());
    let repetitions = Some(leaf.repetitions.as_slice());
    match (column, &leaf.values) {
        (ColumnWriter::BoolColumnWriter(column), Values::Bool(values)) => {
            column.write_batch(values, definitions, repetitions)
        }
        (ColumnWriter::Int64ColumnWriter(column), Values::Int(values)) => {
            column.write_batch(values, definitions, repetitions)
        }
        (ColumnWriter::DoubleColumnWriter(column), Values::Float(values)) => {
            column.write_batch(values, definitions, repetitions)
        }
        (ColumnWriter::ByteArrayColumnWriter(column), Values::Text(values)) => {
            column.write_batch(values, definitions, repetitions)
        }
        _ => Err(ParquetError::General(
            "a column of another type than its values".to_owned(),
        )),
    }
}
