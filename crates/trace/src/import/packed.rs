//! Inputs as their tools pack them: gzip, xz, a frame of LZ4, or zip, told by their first bytes.

use std::io::{self, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;

use super::zip::Zip;

/// Memory that unpacking xz may take, in KiB: twice what its highest level does. A header may claim 4 GiB.
const XZ_MEMORY: u32 = 128 << 10;
/// Longest of the marks by which a format is told.
const MARK: usize = 6;

/// Input, unpacked while it is read.
pub(super) type Unpacked<'a> = BufReader<Box<dyn Read + 'a>>;

/// Returns the unpacked input; one that is in none of the formats is left as it is.
pub(super) fn unpack<'a>(mut reader: impl Read + 'a) -> io::Result<Unpacked<'a>> {
    let mut mark = Vec::new();
    reader.by_ref().take(MARK as u64).read_to_end(&mut mark)?;
    let reader = BufReader::new(Cursor::new(mark.clone()).chain(reader));
    Ok(BufReader::new(match mark[..] {
        [0x1f, 0x8b, 8, ..] => Packed::boxed("gzip", MultiGzDecoder::new(reader)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Packed::boxed("xz", XzReader::new_mem_limit(reader, true, XZ_MEMORY))
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => Packed::boxed("LZ4", FrameDecoder::new(reader)),
        [b'P', b'K', 3, 4, ..] => Packed::boxed("zip", Zip::new(reader)),
        _ => Box::new(reader),
    }))
}

/// Reader whose errors say what is wrong with the packed data, and which ends once.
pub(super) struct Packed<R> {
    format: &'static str,
    reader: R,
    ended: bool,
}

impl<R: Read> Packed<R> {
    pub(super) fn new(format: &'static str, reader: R) -> Self {
        Self { format, reader, ended: false }
    }

    fn boxed<'a>(format: &'static str, reader: R) -> Box<dyn Read + 'a>
    where
        R: 'a,
    {
        Box::new(Self::new(format, reader))
    }
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let read = self.reader.read(buffer).map_err(|error| {
            let format = self.format;
            let problem = match error.kind() {
                io::ErrorKind::Interrupted => return error,
                // The system's errors speak for themselves.
                _ if error.raw_os_error().is_some() => return error,
                io::ErrorKind::UnexpectedEof => "end early; expected a whole file".into(),
                io::ErrorKind::OutOfMemory => "need too much memory; expected at most 128 MiB".into(),
                _ => format!("are damaged or of a rare kind ({error}); expected a whole file"),
            };
            io::Error::new(io::ErrorKind::InvalidData, format!("the {format} data {problem}"))
        })?;
        self.ended = read == 0;
        Ok(read)
    }
}
