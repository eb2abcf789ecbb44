//! A recording from the program's start to the finished trace.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::command::Prepared;
use super::contents::Sampler;
use super::merge::{Merge, Noted};
use super::pool::{Message, Pool, Round};
use super::{Avx512, Progress, RecordError, RecordOptions, RecordSummary, Stopped};
use crate::contents::write_contents;
use crate::format;
use crate::mappings::MappingWriter;
use crate::{Place, ProcessName, Provenance, Rows, TraceError, TraceWriter, select_processes};
use isotherm_recorder_protocol::{Note, layout};

const REST: Duration = Duration::from_millis(5);
const REPORT: Duration = Duration::from_millis(100);
/// Time between searches for chunks of dead processes.
const SWEEP: Duration = Duration::from_secs(1);
/// Longest time that rows wait for the end of their part.
const PART: Duration = Duration::from_secs(5);
/// Times after the stop flag at which the program gets SIGTERM, and then SIGKILL.
const PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(12)];
const NAMED: usize = 16;

pub(super) struct Session<'a> {
    options: &'a RecordOptions,
    child: Child,
    pool: Pool,
    merge: Merge,
    rows: Rows,
    /// `None` after it failed.
    writer: Option<TraceWriter>,
    mappings: MappingWriter,
    contents: Option<Sampler>,
    failure: Option<RecordError>,
    sites: u64,
    /// Process and place of the first instruction of AVX-512.
    avx512: Option<(u32, Option<Place>)>,
    untraced: Vec<String>,
    started: Instant,
    stopped: Option<(Stopped, Instant)>,
    signals_sent: usize,
    /// Rows and bytes written, still known after the writer failed.
    written: (u64, u64),
    /// Command of each process.
    commands: Vec<String>,
}

/// Sets a process's command, which may come before those of lower numbers.
fn set(commands: &mut Vec<String>, number: usize, command: String) {
    commands.resize(commands.len().max(number + 1), String::new());
    commands[number] = command;
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> RecordError {
    move |source| RecordError::Io { action, source }
}

impl<'a> Session<'a> {
    pub(super) fn start(options: &'a RecordOptions, prepared: &Prepared) -> Result<Self, RecordError> {
        let writer = TraceWriter::create(&options.output, provenance(options, prepared))?;
        let started = (|| -> Result<_, RecordError> {
            let directory =
                fs::canonicalize(&options.output).map_err(failed("find the trace's directory"))?;
            let pool =
                Pool::create(directory.join(&layout::POOL_NAME[1..]), options.cache, options.dependence)
                    .map_err(failed("make the recorder's pool in the trace's directory"))?;
            let child = prepared.command(pool.path()).spawn().map_err(failed("start QEMU"))?;
            let contents = options.compressibility.then(Sampler::new).transpose();
            let contents = contents.map_err(failed("start a compressor"))?;
            Ok((pool, child, contents))
        })();
        // Nothing was recorded, and the directory is empty.
        let (pool, child, contents) = started.inspect_err(|_| drop(fs::remove_dir(&options.output)))?;
        Ok(Self {
            options,
            child,
            pool,
            merge: Merge::default(),
            rows: Rows::default(),
            writer: Some(writer),
            mappings: MappingWriter::new(&options.output),
            contents,
            failure: None,
            sites: 0,
            avx512: None,
            untraced: Vec::new(),
            started: Instant::now(),
            stopped: None,
            signals_sent: 0,
            written: (0, 0),
            commands: Vec::new(),
        })
    }

    pub(super) fn run(self, progress: &mut dyn FnMut(&Progress)) -> Result<RecordSummary, RecordError> {
        let output = &self.options.output;
        // A directory without a part would only be in the way of the next attempt.
        self.follow(progress).inspect_err(|_| {
            if !format::part_path(output, 0).exists() {
                MappingWriter::remove(output);
            }
            let _ = fs::remove_dir(output);
        })
    }

    fn follow(mut self, progress: &mut dyn FnMut(&Progress)) -> Result<RecordSummary, RecordError> {
        let [mut reported, mut swept, mut parted] = [self.started; 3];
        let due = |last: &mut Instant, period: Duration| {
            let due = last.elapsed() >= period;
            if due {
                *last = Instant::now();
            }
            due
        };
        let status = loop {
            let round = if due(&mut swept, SWEEP) { Round::Sweep } else { Round::Running };
            let ended = self.child.try_wait().map_err(failed("wait for the program"))?;
            let busy = self.round(if ended.is_some() { Round::Last } else { round });
            if let Some(status) = ended {
                break status;
            }
            if due(&mut parted, PART) {
                self.write(TraceWriter::flush_part);
            }
            self.check_bounds();
            self.press();
            if due(&mut reported, REPORT) {
                progress(&self.progress());
                self.compress();
            }
            if !busy {
                std::thread::sleep(REST);
            }
        };
        progress(&self.progress());
        self.finish(status)
    }

    /// Moves the plugins' records into the trace. Returns whether there were many.
    fn round(&mut self, round: Round) -> bool {
        if round == Round::Last {
            // Children that outlive the command must not write any more.
            self.note(self.pool.stop().map_err(failed("write the recorder's pool")));
        }
        let drained = self.pool.drain(round, &mut self.merge).map_err(failed("read the recorder's pool"));
        let (messages, busy) = self.note(drained).unwrap_or_default();
        self.note(self.pool.check().map_err(failed("extend the recorder's pool")));
        self.receive(messages);
        let (name, commands) = (self.options.process.as_deref(), &self.commands);
        let wanted = |process: u32, program: Option<&str>| {
            let command = commands.get(process as usize);
            name.is_none_or(|name| command.is_some_and(|command| ProcessName::new(command, program).is(name)))
        };
        let notes = self.merge.settle(&mut self.rows, round == Round::Last, wanted);
        self.write_notes(notes);
        let (accesses, lost, untraced) = (self.pool.accesses(), self.pool.lost(), self.pool.untraced());
        let rows = std::mem::take(&mut self.rows);
        self.contents.iter_mut().for_each(|contents| contents.note(&rows));
        self.write(|writer| {
            let provenance = writer.provenance_mut();
            (provenance.accesses, provenance.lost, provenance.untraced) = (accesses, lost, untraced);
            writer.append(&rows)
        });
        self.rows = rows;
        self.rows.clear();
        busy
    }

    /// Compresses pages that had misses.
    fn compress(&mut self) {
        if let Some(contents) = &mut self.contents {
            contents.read(|process| self.pool.pid(process));
        }
    }

    fn receive(&mut self, messages: Vec<Message>) {
        for message in messages {
            match message {
                Message::Process(number, command) => {
                    let number = number as usize;
                    set(&mut self.commands, number, command.clone());
                    self.write(|writer| {
                        set(&mut writer.provenance_mut().processes, number, command);
                        Ok(())
                    });
                }
                Message::Untraced(program) if self.untraced.len() < NAMED => self.untraced.push(program),
                Message::Untraced(_) => {}
            }
        }
    }

    /// Writes the notes among the rows that come next.
    fn write_notes(&mut self, notes: Vec<Noted>) {
        let before = self.written.0;
        let mut notes = notes.into_iter();
        let (avx512, sites) = (&mut self.avx512, &mut self.sites);
        let written = notes.try_for_each(|Noted { row, process, thread, note }| {
            match &note {
                Note::Avx512(address) if avx512.is_none() => {
                    *avx512 = Some((process, self.mappings.place(process, *address)));
                }
                Note::Site { addresses, .. } if !addresses.is_empty() => *sites += 1,
                _ => {}
            }
            self.mappings.write(before + row as u64, process, thread, note)
        });
        let written = written.and_then(|()| self.mappings.flush());
        self.note(written.map_err(RecordError::from));
    }

    /// Uses the writer, unless it has failed. The first failure ends the recording, not the program.
    fn write(&mut self, use_it: impl FnOnce(&mut TraceWriter) -> Result<(), TraceError>) {
        let Some(writer) = &mut self.writer else { return };
        let result = use_it(writer);
        self.written = (writer.rows(), writer.bytes());
        if result.is_err() {
            self.writer = None;
        }
        self.note(result.map_err(RecordError::from));
    }

    /// Keeps the first failure and stops recording at it.
    fn note<T>(&mut self, result: Result<T, RecordError>) -> Option<T> {
        result
            .map_err(|error| {
                self.failure.get_or_insert(error);
                self.stop(Stopped::Failed);
            })
            .ok()
    }

    fn stop(&mut self, reason: Stopped) {
        if self.stopped.is_none() {
            self.stopped = Some((reason, Instant::now()));
            // If even this fails, so does the next drain.
            let _ = self.pool.stop();
        }
    }

    fn check_bounds(&mut self) {
        let asked = self.stopped.is_some_and(|(why, _)| why == Stopped::Asked);
        if self.options.stop.load(Ordering::Relaxed) && !asked {
            self.stop(Stopped::Asked);
            self.stopped = Some((Stopped::Asked, Instant::now()));
        } else if self.options.max_bytes.is_some_and(|bound| self.written.1 >= bound) {
            self.stop(Stopped::Bytes);
        } else if self.options.max_time.is_some_and(|bound| self.started.elapsed() >= bound) {
            self.stop(Stopped::Time);
        }
    }

    /// Ends the program after the stop flag if it does not end by itself.
    fn press(&mut self) {
        let Some((Stopped::Asked, since)) = self.stopped else { return };
        if PATIENCE.get(self.signals_sent).is_none_or(|&patience| since.elapsed() < patience) {
            return;
        }
        self.signals_sent += 1;
        // These fail only if the program has ended meanwhile.
        if self.signals_sent == 1 {
            let kill = format!("kill -TERM {}", self.child.id());
            let _ = Command::new("/bin/sh").arg("-c").arg(kill).stderr(Stdio::null()).status();
        } else {
            let _ = self.child.kill();
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            elapsed: self.started.elapsed(),
            accesses: self.pool.accesses(),
            rows: self.written.0,
            bytes: self.written.1,
            processes: self.commands.len(),
            stopped: self.stopped.map(|(reason, _)| reason),
        }
    }

    fn finish(mut self, status: ExitStatus) -> Result<RecordSummary, RecordError> {
        let untraced = || (!self.pool.is_used()).then_some(RecordError::Untraced);
        let failure = self.failure.take().or_else(untraced);
        let writer = match (failure, self.writer.take()) {
            (None, Some(writer)) => writer,
            (failure, writer) => {
                // What was recorded until then is kept.
                let recorded = writer.filter(|writer| writer.rows() > 0);
                let _ = recorded.map(TraceWriter::finish);
                return Err(failure.unwrap_or(RecordError::Untraced));
            }
        };
        let names: Vec<_> = (0..)
            .zip(&self.commands)
            .map(|(number, command)| ProcessName::new(command, self.merge.program(number)))
            .collect();
        let recorded = match &self.options.process {
            Some(name) => select_processes(&names, name)?.into_iter().filter(|&selected| selected).count(),
            None => names.len(),
        };
        let avx512 = self.avx512.map(|(process, place)| Avx512 {
            command: self.commands.get(process as usize).cloned().unwrap_or_default(),
            place,
        });
        let trace = writer.finish()?;
        let compressed = self.contents.as_ref().map(Sampler::contents);
        compressed.map(|contents| write_contents(&self.options.output, contents)).transpose()?;
        let compressed = compressed.cloned();
        self.pool.remove().map_err(failed("remove the recorder's pool"))?;
        Ok(RecordSummary {
            status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            processes: self.commands,
            sites: self.sites,
            compressed,
            avx512,
            recorded,
            trace,
            accesses: self.pool.accesses(),
            threads: self.pool.threads(),
            lost: self.pool.lost(),
            untraced: self.pool.untraced(),
            untraced_programs: self.untraced,
            elapsed: self.started.elapsed(),
            stopped: self.stopped.map(|(reason, _)| reason),
        })
    }
}

fn provenance(options: &RecordOptions, prepared: &Prepared) -> Provenance {
    let words: Vec<_> = options.command.iter().map(|word| word.to_string_lossy()).collect();
    Provenance {
        recorder: prepared.recorder(),
        machine: machine(),
        cache: Some(options.cache),
        filter: layout::filter(options.cache),
        allocator: options.allocator.as_deref().map(file_name).unwrap_or_default(),
        dependence: options.dependence,
        ..Provenance::new(words.join(" "))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn machine() -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, Linux {}", kernel.trim())
}
