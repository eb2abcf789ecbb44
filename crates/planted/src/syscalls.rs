//! A program whose memory is read and written by system calls rather than by itself.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::Failure;
use crate::arguments::Arguments;
use crate::memory::Mapping;
use crate::random::Random;

/// Two buffers: one is sent, the other received into.
struct Buffers {
    from: Mapping,
    to: Mapping,
}

/// Runs the mode: each operation sends one buffer's contents through the kernel into the other and compares.
pub(crate) fn run(arguments: &mut Arguments) -> Result<(), Failure> {
    let size = arguments.size("size", 1 << 20)?;
    let limit = arguments.limit()?;
    let mut random = Random::new(arguments.number("seed", 1)?);
    arguments.finish()?;
    let mut buffers = Buffers { from: Mapping::new(size)?, to: Mapping::new(size)? };
    let mut file = temporary_file()?;
    let (start, mut done) = (Instant::now(), 0u64);
    // Each operation takes long enough to read the clock every time.
    while done == 0 || limit.goes_on(start, if is_timed(limit) { 0 } else { done }) {
        let seed = random.next();
        buffers.from.fill(seed);
        let ways: [(&str, Way); 5] = [
            ("pipe", through_pipe),
            ("socket", through_socket),
            ("write and read", through_file),
            ("pwrite and pread", by_offset),
            ("writev and readv", vectored),
        ];
        let (name, way) = ways[(done % 5) as usize];
        way(&mut buffers, &mut file).map_err(|error| Failure::Wrong(format!("syscalls: {name}: {error}")))?;
        buffers.to.check(seed).map_err(|failure| named(name, failure))?;
        buffers.from.check(seed).map_err(|failure| named(name, failure))?;
        done += 1;
    }
    println!("syscalls: {done} transfers checked");
    Ok(())
}

fn is_timed(limit: crate::arguments::Limit) -> bool {
    matches!(limit, crate::arguments::Limit::Time(_))
}

fn named(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Wrong(message) => Failure::Wrong(format!("syscalls: {name}: {message}")),
        usage @ Failure::Usage(_) => usage,
    }
}

type Way = fn(&mut Buffers, &mut File) -> io::Result<()>;

/// Returns a file without a name.
fn temporary_file() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("target-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn through_pipe(buffers: &mut Buffers, _: &mut File) -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    exchange(buffers, reader, writer)
}

fn through_socket(buffers: &mut Buffers, _: &mut File) -> io::Result<()> {
    let (reader, writer) = UnixStream::pair()?;
    exchange(buffers, reader, writer)
}

/// Lets another thread write while this one reads.
fn exchange(buffers: &mut Buffers, mut reader: impl Read, mut writer: impl Write + Send) -> io::Result<()> {
    let Buffers { from, to } = buffers;
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || writer.write_all(from.bytes_mut()));
        let received = reader.read_exact(to.bytes_mut());
        drop(reader);
        let sent = sender.join().map_err(|_| io::Error::other("the writer panicked"))?;
        received.and(sent)
    })
}

fn through_file(buffers: &mut Buffers, file: &mut File) -> io::Result<()> {
    file.rewind()?;
    file.write_all(buffers.from.bytes_mut())?;
    file.rewind()?;
    file.read_exact(buffers.to.bytes_mut())
}

/// Transfers parts from the last to the first.
fn by_offset(buffers: &mut Buffers, file: &mut File) -> io::Result<()> {
    file.write_all_at(buffers.from.bytes_mut(), 0)?;
    let part = (buffers.to.bytes() / 7).next_multiple_of(8);
    for (at, part_bytes) in buffers.to.bytes_mut().chunks_mut(part).enumerate().rev() {
        file.read_exact_at(part_bytes, (at * part) as u64)?;
    }
    Ok(())
}

/// Transfers odd-sized pieces, many per call.
fn vectored(buffers: &mut Buffers, file: &mut File) -> io::Result<()> {
    file.rewind()?;
    let pieces: Vec<_> = buffers.from.bytes_mut().chunks(10_007).collect();
    for group in pieces.chunks(64) {
        let slices: Vec<_> = group.iter().map(|piece| IoSlice::new(piece)).collect();
        let bytes: usize = group.iter().map(|piece| piece.len()).sum();
        whole(file.write_vectored(&slices)?, bytes)?;
    }
    file.rewind()?;
    let mut pieces: Vec<_> = buffers.to.bytes_mut().chunks_mut(9_001).collect();
    for group in pieces.chunks_mut(64) {
        let bytes: usize = group.iter().map(|piece| piece.len()).sum();
        let mut slices: Vec<_> = group.iter_mut().map(|piece| IoSliceMut::new(piece)).collect();
        whole(file.read_vectored(&mut slices)?, bytes)?;
    }
    Ok(())
}

/// Checks that a regular file transferred all of a group at once, as it does unless the kernel found a part
/// of the memory unusable.
fn whole(transferred: usize, bytes: usize) -> io::Result<()> {
    if transferred == bytes {
        return Ok(());
    }
    Err(io::Error::other(format!("{transferred} of {bytes} bytes transferred")))
}
