//! Which format a file has: by the ending of its name, checked against its first bytes.

use std::{
    fs::File,
    io::{BufReader, Cursor, Read, Seek},
    path::Path,
};

use crate::error::DatasetError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON value a line.
    Lines,
    /// One JSON list, or an object that holds it.
    List,
    Parquet,
}

/// How the bytes of a text file are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// A text file from its beginning, unpacked.
pub(crate) type Text = BufReader<Box<dyn Read + Send>>;

pub(crate) enum Opened {
    Lines(Text),
    List(Text),
    Parquet(File),
}

const PARQUET_MAGIC: &[u8] = b"PAR1";
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Of texts, so that long rows are not read in crumbs.
const BUFFER: usize = 1 << 18;

/// Opens a file and finds its format. Files ending in `.gz` and `.zst` are unpacked on the way.
///
/// `.jsonl` and `.ndjson` are lines, `.parquet` is Parquet. `.json` is a list, unless its first line is
/// a whole JSON object and another one follows: many datasets name their lines so. Names with another
/// ending are taken by content. `keyed` says that an object is asked for its list.
pub(crate) fn open(path: &Path, keyed: bool) -> Result<Opened, DatasetError> {
    let unreadable = DatasetError::unreadable(path);
    let mut file = File::open(path).map_err(&unreadable)?;
    let mut head = Vec::with_capacity(4);
    file.by_ref()
        .take(4)
        .read_to_end(&mut head)
        .map_err(&unreadable)?;
    file.rewind().map_err(&unreadable)?;

    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let is_parquet = head == PARQUET_MAGIC;
    if name.ends_with(".parquet") || name.ends_with(".pq") {
        return if is_parquet {
            Ok(Opened::Parquet(file))
        } else {
            Err(DatasetError::format(
                path,
                "the name says Parquet, but the file does not begin with `PAR1`",
            ))
        };
    }
    let packing = if head.starts_with(GZIP_MAGIC) {
        Packing::Gzip
    } else if head.starts_with(ZSTD_MAGIC) {
        Packing::Zstd
    } else {
        Packing::Plain
    };
    let (name, named) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
        (Some(name), _) => (name, Some(Packing::Gzip)),
        (_, Some(name)) => (name, Some(Packing::Zstd)),
        _ => (name.as_str(), None),
    };
    if named.is_some_and(|named| named != packing) {
        return Err(DatasetError::format(
            path,
            "the name says packed, but the content is not packed that way",
        ));
    }
    let is_lines = name.ends_with(".jsonl") || name.ends_with(".ndjson");
    let is_list = name.ends_with(".json");
    if is_parquet {
        return if is_lines || is_list {
            Err(DatasetError::format(
                path,
                "the name says JSON, but the content is Parquet; name it `.parquet`",
            ))
        } else {
            Ok(Opened::Parquet(file))
        };
    }

    let plain: Box<dyn Read + Send> = match packing {
        Packing::Plain => Box::new(file),
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Packing::Zstd => Box::new(zstd::Decoder::new(file).map_err(&unreadable)?),
    };
    let (head, text) = peeked(plain).map_err(&unreadable)?;
    let first = head.as_slice();
    let begins_list = first.trim_ascii_start().first() == Some(&b'[');
    if is_lines {
        return if begins_list {
            Err(DatasetError::format(
                path,
                "the name says one JSON object a line, but the content is a JSON list; name it `.json`",
            ))
        } else {
            Ok(Opened::Lines(text))
        };
    }
    let begins_object = first.trim_ascii_start().first() == Some(&b'{');
    let is_many = begins_object && first_line_is_a_value(first).unwrap_or(!keyed);
    Ok(if begins_list || !is_many {
        Opened::List(text)
    } else {
        Opened::Lines(text)
    })
}

/// A text from its beginning, whatever its name; packed ones are not unpacked.
pub(crate) fn open_text(path: &Path) -> Result<Text, DatasetError> {
    let unreadable = DatasetError::unreadable(path);
    let file = File::open(path).map_err(&unreadable)?;
    let (_, text) = peeked(Box::new(file)).map_err(&unreadable)?;
    Ok(text)
}

/// The beginning of a text, and the text from its beginning. The byte-order mark that some editors put in
/// front of UTF-8 is left out.
fn peeked(mut text: Box<dyn Read + Send>) -> std::io::Result<(Vec<u8>, Text)> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut head = Vec::new();
    text.by_ref().take(BUFFER as u64).read_to_end(&mut head)?;
    if head.starts_with(MARK) {
        head.drain(..MARK.len());
    }
    let whole = Cursor::new(head.clone()).chain(text);
    Ok((head, BufReader::with_capacity(BUFFER, Box::new(whole))))
}

/// Whether the first line of a text that begins with `head` is a whole JSON value with something behind
/// it. `None` where the line does not end within `head`.
fn first_line_is_a_value(head: &[u8]) -> Option<bool> {
    let head = head.trim_ascii_start();
    let end = head.iter().position(|byte| *byte == b'\n')?;
    let is_value = serde_json::from_slice::<serde::de::IgnoredAny>(&head[..end]).is_ok();
    Some(is_value && !head[end..].trim_ascii().is_empty())
}
