//! YCSB's workload C (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010) against a
//! real redis-server:
//!
//! `ycsb SOCKET RECORDS READS` loads records of 1,000 bytes over the unix socket, reads them by the scrambled
//! Zipf distribution, and prints the number of reads and a checksum over their bytes, which depends only on
//! the arguments.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use isotherm_workloads::{Random, Zipf, mix};

/// YCSB's ten fields of 100 bytes, as one value.
const RECORD: usize = 1000;
/// Requests in flight at once.
const PIPELINE: u64 = 32;
const SEED: u64 = 1;
/// Attempts to connect to the server's socket, one every 100 ms.
const ATTEMPTS: usize = 600;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [socket, records, reads] = words.as_slice() else {
        return Err("expected SOCKET RECORDS READS".into());
    };
    let (records, reads): (u64, u64) = (records.parse()?, reads.parse()?);
    let mut client = Client::connect(socket)?;
    let mut value = String::with_capacity(RECORD + 16);
    client.all(0..records, |record, request| {
        fill(record, &mut value);
        let key = key(record);
        write!(request, "*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${RECORD}\r\n{value}\r\n", key.len())
    })?;
    let (zipf, mut random) = (Zipf::scrambled(), Random::new(SEED));
    let checksum = client.all(0..reads, |_, request| {
        let key = key(zipf.key(records, &mut random));
        write!(request, "*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len())
    })?;
    println!("ycsb: {reads} of {records} records read, checksum {checksum:016x}");
    Ok(())
}

fn key(record: u64) -> String {
    format!("user{}", mix(record))
}

/// Fills in the bytes of a record.
fn fill(record: u64, value: &mut String) {
    value.clear();
    let mut state = record;
    while value.len() < RECORD {
        state = mix(state);
        let _ = write!(value, "{state:016x}");
    }
    value.truncate(RECORD);
}

struct Client {
    requests: UnixStream,
    replies: BufReader<UnixStream>,
    checksum: u64,
}

impl Client {
    /// Waits for the server.
    fn connect(socket: &str) -> io::Result<Self> {
        let mut attempts = 0;
        let requests = loop {
            match UnixStream::connect(socket) {
                Err(_) if attempts < ATTEMPTS => attempts += 1,
                other => break other?,
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let replies = BufReader::new(requests.try_clone()?);
        Ok(Self { requests, replies, checksum: 0 })
    }

    /// Makes a request for each number, `PIPELINE` at a time; returns the checksum over all answers so far.
    fn all(
        &mut self,
        numbers: std::ops::Range<u64>,
        mut request: impl FnMut(u64, &mut String) -> std::fmt::Result,
    ) -> Result<u64, Box<dyn std::error::Error>> {
        let (mut text, mut reply) = (String::new(), Vec::new());
        for first in numbers.clone().step_by(PIPELINE as usize) {
            let group = first..numbers.end.min(first + PIPELINE);
            text.clear();
            for number in group.clone() {
                request(number, &mut text)?;
            }
            self.requests.write_all(text.as_bytes())?;
            for _ in group {
                self.answer(&mut reply)?;
            }
        }
        Ok(self.checksum)
    }

    /// Takes `+OK`, or `$1000` and the record.
    fn answer(&mut self, reply: &mut Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
        reply.clear();
        self.replies.read_until(b'\n', reply)?;
        let line = String::from_utf8_lossy(reply).trim_end().to_owned();
        match line.split_at_checked(1) {
            Some(("$", length)) => {
                reply.resize(length.parse::<usize>()? + 2, 0);
                self.replies.read_exact(reply)?;
            }
            Some(("+", _)) => {}
            _ => {
                return Err(
                    format!("expected +OK or a record from the server, but it answered '{line}'").into()
                );
            }
        }
        for part in reply.chunks(8) {
            let word = part.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
            self.checksum = (self.checksum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5);
        }
        Ok(())
    }
}
