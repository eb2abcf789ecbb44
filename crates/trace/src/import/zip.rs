//! The files in a zip, one after the other, as one stream: DynamoRIO cuts a thread's records into such.
//!
//! The archive is read from its start, by the header before each file, so that it may come from a pipe, and
//! the directory at its end, which may claim anything, is not needed.

use std::io::{self, BufRead, Read, Take};
use std::mem;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

const FILE: [u8; 4] = *b"PK\x03\x04";
/// Begins the directory behind the files, or ends an archive without files.
const DIRECTORY: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
/// Begins what may follow a file: its checksum and sizes, if its header lacks them.
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
/// Bytes of the longest descriptor.
const LONGEST_DESCRIPTOR: usize = 24;
/// Bytes of a file's header behind its signature.
const HEADER: usize = 26;

const ENCRYPTED: u16 = 1;
const WITH_DESCRIPTOR: u16 = 1 << 3;
/// Size of a stored file that stands in an extension.
const ELSEWHERE: u32 = u32::MAX;

enum State<R> {
    Between(R),
    Stored(Take<R>),
    Deflated(DeflateDecoder<R>),
    Ended,
}

pub(super) struct Zip<R> {
    state: State<R>,
    crc: Crc,
    /// Checksum of the current file, if its header has it.
    expected: Option<u32>,
}

impl<R: BufRead> Zip<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { state: State::Between(reader), crc: Crc::new(), expected: Some(0) }
    }

    /// Ends a file, whose reader is `reader`, and begins the next one.
    fn advance(&mut self, mut reader: R) -> io::Result<State<R>> {
        let signature = match self.expected {
            Some(expected) => {
                self.check(expected)?;
                bytes(&mut reader)?
            }
            None => self.descriptor(&mut reader)?,
        };
        match signature {
            FILE => self.file(reader),
            DIRECTORY | END => Ok(State::Ended),
            _ => Err(invalid("no file's header where one is due")),
        }
    }

    fn check(&self, expected: u32) -> io::Result<()> {
        if self.crc.sum() == expected { Ok(()) } else { Err(invalid("a file's checksum differs")) }
    }

    /// Reads what follows a file up to the next signature, which it returns.
    fn descriptor(&self, reader: &mut R) -> io::Result<[u8; 4]> {
        let mut found = Vec::new();
        while found.len() < LONGEST_DESCRIPTOR + 4 {
            found.extend(bytes::<1>(reader)?);
            let Some((descriptor, &signature)) = found.split_last_chunk::<4>() else { continue };
            if descriptor.len() >= 12 && (signature == FILE || signature == DIRECTORY) {
                let descriptor = descriptor.strip_prefix(&DESCRIPTOR).unwrap_or(descriptor);
                let (checksum, _) = descriptor.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
                self.check(u32::from_le_bytes(*checksum))?;
                return Ok(signature);
            }
        }
        Err(invalid("no file's header where one is due"))
    }

    fn file(&mut self, mut reader: R) -> io::Result<State<R>> {
        let header: [u8; HEADER] = bytes(&mut reader)?;
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let (flags, method, checksum, size) = (short(2), short(4), long(10), long(14));
        let names = u64::from(short(22)) + u64::from(short(24));
        if io::copy(&mut reader.by_ref().take(names), &mut io::sink())? < names {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if flags & ENCRYPTED != 0 {
            return Err(invalid("a file is encrypted"));
        }
        self.crc.reset();
        self.expected = (flags & WITH_DESCRIPTOR == 0).then_some(checksum);
        match method {
            0 if self.expected.is_some() && size != ELSEWHERE => Ok(State::Stored(reader.take(size.into()))),
            8 => Ok(State::Deflated(DeflateDecoder::new(reader))),
            _ => Err(invalid("a file is neither deflated nor stored with its size before it")),
        }
    }
}

impl<R: BufRead> Read for Zip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.state {
                State::Between(_) => 0,
                State::Stored(reader) => reader.read(buffer)?,
                State::Deflated(reader) => reader.read(buffer)?,
                State::Ended => return Ok(0),
            };
            if read > 0 {
                self.crc.update(&buffer[..read]);
                return Ok(read);
            }
            let reader = match mem::replace(&mut self.state, State::Ended) {
                State::Between(reader) => reader,
                State::Stored(reader) if reader.limit() > 0 => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                State::Stored(reader) => reader.into_inner(),
                State::Deflated(reader) => reader.into_inner(),
                State::Ended => return Ok(0),
            };
            self.state = self.advance(reader)?;
        }
    }
}

fn bytes<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
