//! Texts that LiveCodeBench packs: base64 of zlib of a pickled string. Nothing is unpickled: a pickle of one
//! string is read, and every other one refused.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::ZlibDecoder;

/// A text that is not packed as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackedError {
    #[error("is not base64: {0}")]
    Base64(String),
    #[error("is not compressed by zlib: {0}")]
    Zlib(String),
    #[error("holds more than {} MiB", LARGEST >> 20)]
    TooLarge,
    /// Pickles run programs when they are loaded; only one string is taken out of one.
    #[error("is a pickle of something else than one string, at byte {at}; such are never loaded")]
    Pickle { at: usize },
    #[error("is a pickled string that is not UTF-8")]
    Encoding,
}

/// Bytes of the largest text that is unpacked.
const LARGEST: u64 = 1 << 28;

/// The string that base64 of zlib of its pickle holds (spec of the critique study, section 9.3).
///
/// # Errors
/// What the text is instead.
pub fn unpacked(text: &str) -> Result<String, PackedError> {
    let compressed = STANDARD
        .decode(text.trim())
        .map_err(|error| PackedError::Base64(error.to_string()))?;
    let mut pickle = Vec::new();
    ZlibDecoder::new(&compressed[..])
        .take(LARGEST + 1)
        .read_to_end(&mut pickle)
        .map_err(|error| PackedError::Zlib(error.to_string()))?;
    if pickle.len() as u64 > LARGEST {
        return Err(PackedError::TooLarge);
    }
    let bytes = pickled_string(&pickle).map_err(|at| PackedError::Pickle { at })?;
    String::from_utf8(bytes.to_vec()).map_err(|_| PackedError::Encoding)
}

/// The bytes of the one string of a pickle of protocol 1 to 5; else where it turns out to be something else.
///
/// A string is `X` with four bytes of length, or of protocol 4 and later `\x8c` with one and `\x8d` with
/// eight; `\x80` and a number say the protocol, `\x95` and eight bytes begin a frame, `q`, `r` and `\x94`
/// remember what was read, and `.` ends it.
fn pickled_string(pickle: &[u8]) -> Result<&[u8], usize> {
    let mut found = None;
    let mut at = 0;
    loop {
        let rest = pickle.get(at..).unwrap_or_default();
        let Some((operation, rest)) = rest.split_first() else {
            return Err(at);
        };
        let width = match (operation, found) {
            (b'X', None) => Some(4),
            (0x8c, None) => Some(1),
            (0x8d, None) => Some(8),
            _ => None,
        };
        at += match (operation, width, found) {
            (_, Some(width), _) => {
                let length = length(rest, width).ok_or(at)?;
                let end = width.checked_add(length).ok_or(at)?;
                found = Some(rest.get(width..end).ok_or(at)?);
                1 + end
            }
            (0x80, ..) => 2,
            (0x95, ..) => 9,
            (b'q', _, Some(_)) => 2,
            (b'r', _, Some(_)) => 5,
            (0x94, _, Some(_)) => 1,
            (b'.', _, Some(bytes)) if rest.is_empty() => return Ok(bytes),
            _ => return Err(at),
        };
    }
}

/// A number of `width` bytes, least first.
fn length(bytes: &[u8], width: usize) -> Option<usize> {
    let mut number = [0; 8];
    number[..width].copy_from_slice(bytes.get(..width)?);
    usize::try_from(u64::from_le_bytes(number)).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;

    fn packed(pickle: &[u8]) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(pickle).unwrap();
        STANDARD.encode(encoder.finish().unwrap())
    }

    /// As Python's pickle of protocol 4 writes a string.
    fn framed(text: &str) -> Vec<u8> {
        let mut pickle = b"\x80\x04\x95".to_vec();
        pickle.extend((text.len() as u64 + 4).to_le_bytes());
        pickle.extend([0x8c, text.len() as u8]);
        pickle.extend(text.as_bytes());
        pickle.extend(b"\x94.");
        pickle
    }

    #[test]
    fn strings_of_every_protocol_are_read() {
        let mut third = b"\x80\x03X\x05\x00\x00\x00".to_vec();
        third.extend("h\u{e9}l".as_bytes());
        third.extend(b"lq\x00.");
        let mut long = b"\x80\x05\x8d".to_vec();
        long.extend(300_u64.to_le_bytes());
        long.extend([b'a'; 300]);
        long.extend(b"\x94.");
        for (pickle, text) in [
            (framed("[1]"), "[1]".to_owned()),
            (third, "h\u{e9}ll".to_owned()),
            (b"X\x02\x00\x00\x00{}q\x00.".to_vec(), "{}".to_owned()),
            (long, "a".repeat(300)),
        ] {
            assert_eq!(unpacked(&packed(&pickle)).unwrap(), text);
        }
    }

    #[test]
    fn whatever_is_no_string_is_refused() {
        // `cos\nsystem\n(S'…'\ntR.`, what a pickle runs a command by.
        let command = b"cos\nsystem\n(S'true'\ntR.";
        assert_eq!(
            unpacked(&packed(command)),
            Err(PackedError::Pickle { at: 0 })
        );
        let mut two = framed("a");
        two.pop();
        two.extend(b"\x8c\x01b\x94.");
        for pickle in [
            two,
            b"\x80\x04]\x94.".to_vec(),
            b"\x80\x04K\x01.".to_vec(),
            b"\x80\x04\x8c\xffshort\x94.".to_vec(),
            b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffx\x94.".to_vec(),
            b"\x80\x04.".to_vec(),
            Vec::new(),
            [framed("a"), b"more".to_vec()].concat(),
        ] {
            let found = unpacked(&packed(&pickle));
            assert!(
                matches!(found, Err(PackedError::Pickle { .. })),
                "{found:?}"
            );
        }
        assert!(matches!(
            unpacked("no base64!"),
            Err(PackedError::Base64(_))
        ));
        let plain = STANDARD.encode("plain");
        assert!(matches!(unpacked(&plain), Err(PackedError::Zlib(_))));
        let latin = packed(b"\x80\x04\x8c\x01\xe9\x94.");
        assert_eq!(unpacked(&latin), Err(PackedError::Encoding));
    }
}
