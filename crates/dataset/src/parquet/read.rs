//! The rows of a Parquet file, one batch of them in memory.

use std::{
    collections::VecDeque,
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use parquet::{
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{
        BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
        Int64Type, Int96Type,
    },
    errors::ParquetError,
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    schema::types::ColumnDescPtr,
};
use serde_json::{Map, Value};

use super::{
    cell,
    tree::{self, Kind, Node, Repeated},
};
use crate::error::{DatasetError, Place};

/// Rows that are put together at a time.
const BATCH: usize = 64;

/// In a row, before a column is taken to end early.
const EMPTY_PAGES: u32 = 8;

pub(crate) struct Reader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    fields: Vec<(String, Node)>,
    descriptors: Vec<ColumnDescPtr>,
    /// Of the row group that is being read.
    columns: Vec<Column>,
    rows_left_in_group: usize,
    next_group: usize,
    ready: VecDeque<Value>,
    rows: u64,
}

impl Reader {
    pub(crate) fn new(path: PathBuf, file: File) -> Result<Self, DatasetError> {
        let file = unpanicked(|| SerializedFileReader::new(file))
            .map_err(|error| DatasetError::format(&path, format!("damaged Parquet: {error}")))?;
        let schema = file.metadata().file_metadata().schema_descr();
        Ok(Self {
            path,
            fields: tree::of_schema(schema),
            descriptors: schema.columns().to_vec(),
            file,
            columns: Vec::new(),
            rows_left_in_group: 0,
            next_group: 0,
            ready: VecDeque::new(),
            rows: 0,
        })
    }

    pub(crate) fn next(&mut self) -> Option<Result<(Place, Value), DatasetError>> {
        let place = Place::Row(self.rows + 1);
        while self.ready.is_empty() {
            match unpanicked(|| self.fill()) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    return Some(Err(DatasetError::Broken {
                        path: self.path.clone(),
                        place,
                        message: format!("damaged Parquet: {error}"),
                    }));
                }
            }
        }
        self.rows += 1;
        self.ready.pop_front().map(|row| Ok((place, row)))
    }

    /// Puts the next rows together; `false` at the end of the file.
    fn fill(&mut self) -> Result<bool, ParquetError> {
        if self.rows_left_in_group == 0 {
            if self.next_group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.next_group)?;
            self.rows_left_in_group = usize::try_from(group.metadata().num_rows())
                .map_err(|_| damage("a negative number of rows"))?;
            self.columns = self
                .descriptors
                .iter()
                .enumerate()
                .map(|(index, descriptor)| {
                    Ok(Column::new(
                        group.get_column_reader(index)?,
                        descriptor.clone(),
                    ))
                })
                .collect::<Result<_, ParquetError>>()?;
            self.next_group += 1;
            return Ok(true);
        }
        let count = self.rows_left_in_group.min(BATCH);
        for column in &mut self.columns {
            column.read(count)?;
        }
        for _ in 0..count {
            let mut row = Map::new();
            for (name, node) in &self.fields {
                row.insert(name.clone(), take(node, &mut self.columns)?);
            }
            self.ready.push_back(Value::Object(row));
        }
        if self.columns.iter().any(|column| !column.is_empty()) {
            return Err(damage("columns of different lengths"));
        }
        self.rows_left_in_group -= count;
        Ok(true)
    }
}

/// The next value of `node`. All columns below a node have their levels in step down to it, so the first
/// of them tells whether the value is there.
fn take(node: &Node, columns: &mut [Column]) -> Result<Value, ParquetError> {
    let first = node.leaves.start;
    if node.leaves.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    if let Some(level) = node.null_below
        && columns[first].definition()? < level
    {
        skip(node, columns)?;
        return Ok(Value::Null);
    }
    match &node.kind {
        Kind::Leaf => columns[first].take(),
        Kind::Struct(fields) => {
            let mut object = Map::new();
            for (name, field) in fields {
                object.insert(name.clone(), take(field, columns)?);
            }
            Ok(Value::Object(object))
        }
        Kind::List(repeated) => Ok(Value::Array(elements(node, repeated, columns)?)),
        Kind::Map(repeated) => Ok(object_of(elements(node, repeated, columns)?)),
    }
}

fn elements(
    node: &Node,
    repeated: &Repeated,
    columns: &mut [Column],
) -> Result<Vec<Value>, ParquetError> {
    let first = node.leaves.start;
    let mut elements = Vec::new();
    if columns[first].definition()? < repeated.empty_below {
        skip(node, columns)?;
        return Ok(elements);
    }
    loop {
        elements.push(take(&repeated.element, columns)?);
        if columns[first].repetition() != Some(repeated.again_at) {
            return Ok(elements);
        }
    }
}

/// Passes the one entry that every column below has for a value that is not there.
fn skip(node: &Node, columns: &mut [Column]) -> Result<(), ParquetError> {
    columns[node.leaves.clone()]
        .iter_mut()
        .try_for_each(Column::skip)
}

/// Pairs as an object where all keys are texts and different, else as the list of pairs.
fn object_of(pairs: Vec<Value>) -> Value {
    let mut object = Map::new();
    for pair in &pairs {
        let mut values = pair.as_object().into_iter().flat_map(Map::values);
        let (Some(Value::String(key)), Some(value)) = (values.next(), values.next()) else {
            return Value::Array(pairs);
        };
        if object.insert(key.clone(), value.clone()).is_some() {
            return Value::Array(pairs);
        }
    }
    Value::Object(object)
}

/// A batch of one column.
struct Column {
    reader: Typed,
    descriptor: ColumnDescPtr,
    /// Empty where the column has no nulls, or no lists.
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    levels: usize,
    level: usize,
    value: usize,
}

/// A reader and the values that it read last.
enum Typed {
    Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
    Int32(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Int64(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Int96(ColumnReaderImpl<Int96Type>, Vec<parquet::data_type::Int96>),
    Float(ColumnReaderImpl<FloatType>, Vec<f32>),
    Double(ColumnReaderImpl<DoubleType>, Vec<f64>),
    Bytes(
        ColumnReaderImpl<ByteArrayType>,
        Vec<parquet::data_type::ByteArray>,
    ),
    FixedBytes(
        ColumnReaderImpl<FixedLenByteArrayType>,
        Vec<parquet::data_type::FixedLenByteArray>,
    ),
}

impl Column {
    fn new(reader: ColumnReader, descriptor: ColumnDescPtr) -> Self {
        use ColumnReader as Reader;
        let reader = match reader {
            Reader::BoolColumnReader(reader) => Typed::Bool(reader, Vec::new()),
            Reader::Int32ColumnReader(reader) => Typed::Int32(reader, Vec::new()),
            Reader::Int64ColumnReader(reader) => Typed::Int64(reader, Vec::new()),
            Reader::Int96ColumnReader(reader) => Typed::Int96(reader, Vec::new()),
            Reader::FloatColumnReader(reader) => Typed::Float(reader, Vec::new()),
            Reader::DoubleColumnReader(reader) => Typed::Double(reader, Vec::new()),
            Reader::ByteArrayColumnReader(reader) => Typed::Bytes(reader, Vec::new()),
            Reader::FixedLenByteArrayColumnReader(reader) => Typed::FixedBytes(reader, Vec::new()),
        };
        Self {
            reader,
            descriptor,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            levels: 0,
            level: 0,
            value: 0,
        }
    }

    /// Reads the levels and values of `rows` rows in place of the last ones.
    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        fn fill<T: DataType>(
            reader: &mut ColumnReaderImpl<T>,
            values: &mut Vec<T::T>,
            levels: (&mut Vec<i16>, &mut Vec<i16>),
            rows: usize,
        ) -> Result<(usize, usize), ParquetError> {
            values.clear();
            let (mut records, mut entries, mut pauses) = (0, 0, 0);
            // The reader also stops at a page without values, which some writers leave behind.
            while records < rows && pauses < EMPTY_PAGES {
                let (read, _, read_levels) =
                    reader.read_records(rows - records, Some(levels.0), Some(levels.1), values)?;
                records += read;
                entries += read_levels;
                pauses = if read_levels == 0 { pauses + 1 } else { 0 };
            }
            Ok((records, entries))
        }
        self.definitions.clear();
        self.repetitions.clear();
        (self.level, self.value) = (0, 0);
        let levels = (&mut self.definitions, &mut self.repetitions);
        let (read, levels) = match &mut self.reader {
            Typed::Bool(reader, values) => fill(reader, values, levels, rows),
            Typed::Int32(reader, values) => fill(reader, values, levels, rows),
            Typed::Int64(reader, values) => fill(reader, values, levels, rows),
            Typed::Int96(reader, values) => fill(reader, values, levels, rows),
            Typed::Float(reader, values) => fill(reader, values, levels, rows),
            Typed::Double(reader, values) => fill(reader, values, levels, rows),
            Typed::Bytes(reader, values) => fill(reader, values, levels, rows),
            Typed::FixedBytes(reader, values) => fill(reader, values, levels, rows),
        }?;
        if read != rows {
            return Err(damage(&format!(
                "column `{}` ends {} rows early",
                self.descriptor.path().string(),
                rows - read
            )));
        }
        self.levels = levels;
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.level == self.levels
    }

    /// The definition level of the next entry.
    fn definition(&self) -> Result<i16, ParquetError> {
        if self.is_empty() {
            return Err(self.ends_early());
        }
        Ok(match self.definitions.get(self.level) {
            Some(level) => *level,
            None => self.descriptor.max_def_level(),
        })
    }

    /// The repetition level of the next entry, `None` at the end of the batch.
    fn repetition(&self) -> Option<i16> {
        self.repetitions.get(self.level).copied()
    }

    fn skip(&mut self) -> Result<(), ParquetError> {
        if self.definition()? >= self.descriptor.max_def_level() {
            return Err(damage("columns of a struct that disagree"));
        }
        self.level += 1;
        Ok(())
    }

    /// The value of the next entry.
    fn take(&mut self) -> Result<Value, ParquetError> {
        if self.definition()? < self.descriptor.max_def_level() {
            return Err(damage("columns of a struct that disagree"));
        }
        let index = self.value;
        let descriptor = &self.descriptor;
        let value = match &self.reader {
            Typed::Bool(_, values) => values.get(index).map(|value| Ok(Value::Bool(*value))),
            Typed::Int32(_, values) => values
                .get(index)
                .map(|value| cell::of_int32(*value, descriptor)),
            Typed::Int64(_, values) => values
                .get(index)
                .map(|value| cell::of_int64(*value, descriptor)),
            Typed::Int96(_, values) => values.get(index).map(cell::of_int96),
            Typed::Float(_, values) => values
                .get(index)
                .map(|value| Ok(cell::of_float(f64::from(*value)))),
            Typed::Double(_, values) => values.get(index).map(|value| Ok(cell::of_float(*value))),
            Typed::Bytes(_, values) => values
                .get(index)
                .map(|value| cell::of_bytes(value.data(), descriptor)),
            Typed::FixedBytes(_, values) => values
                .get(index)
                .map(|value| cell::of_bytes(value.data(), descriptor)),
        };
        self.level += 1;
        self.value += 1;
        value.unwrap_or_else(|| Err(self.ends_early()))
    }

    fn ends_early(&self) -> ParquetError {
        damage(&format!(
            "column `{}` ends early",
            self.descriptor.path().string()
        ))
    }
}

/// The `parquet` crate panics on some damaged files. What it was reading is given up after any error, so
/// nothing half-done is looked at again.
fn unpanicked<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(damage("its structure contradicts itself")))
}

pub(super) fn damage(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
