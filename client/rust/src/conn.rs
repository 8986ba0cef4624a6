use crate::answer::{decode_answer, decode_hello, Answer, Body, Refusal};
use crate::status::{Error, Status};
use crate::types::Hello;
use crate::wire::{Incoming, REQUESTS_MAX};
use std::collections::HashSet;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Encodes a request with the id that it gets.
pub(crate) type Encode<'a> = &'a dyn Fn(u32) -> Result<Vec<u8>, Error>;

/// The reason for which there is no answer.
#[derive(Debug)]
pub(crate) enum Cause {
    Protocol(String),
    Time,
    Other(String),
}

impl From<Error> for Cause {
    fn from(error: Error) -> Cause {
        match error {
            Error::Protocol(text) => Cause::Protocol(text),
            other => Cause::Other(other.to_string()),
        }
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Cause {
        Cause::Other(error.to_string())
    }
}

impl Cause {
    pub(crate) fn text(&self) -> String {
        match self {
            Cause::Time => "the time is over".to_string(),
            Cause::Protocol(text) | Cause::Other(text) => text.clone(),
        }
    }
}

/// There will be no answer on this connection, or not in time.
#[derive(Debug)]
pub(crate) struct Lost {
    pub cause: Cause,
    pub sent: bool,   // the daemon may have the whole request
    pub over: bool,   // the time of the call is over
    pub denied: bool, // the daemon denies this client
    pub broken: bool, // the connection must be closed
}

impl Lost {
    pub(crate) fn unsent(cause: Cause) -> Lost {
        let over = matches!(cause, Cause::Time);
        Lost {
            cause,
            sent: false,
            over,
            denied: false,
            broken: true,
        }
    }
}

/// The end of a call: lost, or an error that no further attempt would change.
pub(crate) enum Fail {
    Lost(Lost),
    Final(Error),
}

/// The time that is left, never zero.
pub(crate) fn time_left(end: Instant) -> Option<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return None;
    }
    Some(left.max(Duration::from_millis(1)))
}

/// Connects in a thread: the standard library has no limit of time for this.
fn open(path: &Path, end: Instant) -> Result<UnixStream, Cause> {
    let left = time_left(end).ok_or(Cause::Time)?;
    let (to, from) = mpsc::channel();
    let path = path.to_path_buf();
    thread::Builder::new().spawn(move || {
        // After the end of the time nobody receives, and the stream closes.
        let _ = to.send(UnixStream::connect(path));
    })?;
    match from.recv_timeout(left) {
        Ok(stream) => Ok(stream?),
        Err(RecvTimeoutError::Timeout) => Err(Cause::Time),
        Err(RecvTimeoutError::Disconnected) => {
            Err(Cause::Other("cannot connect".to_string()))
        }
    }
}

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// A connection with at most one request whose answer somebody needs.
#[derive(Debug)]
pub(crate) struct Conn {
    pub hello: Hello,
    pub number: u64, // no other connection of this process has it
    stream: UnixStream,
    incoming: Incoming,
    chunk: Vec<u8>,
    last_id: u32,
    ready: Option<Answer>,
    abandoned: HashSet<u32>, // nobody needs their answers
    refusal: Option<Refusal>,
}

impl Conn {
    pub(crate) fn connect(path: &Path, end: Instant) -> Result<Conn, Cause> {
        let mut stream = open(path, end)?;
        let mut incoming = Incoming::default();
        let mut chunk = vec![0; 1 << 16];
        let packets = loop {
            if let Some(packets) = incoming.message()? {
                break packets;
            }
            let left = time_left(end).ok_or(Cause::Time)?;
            read_some(&mut stream, &mut incoming, &mut chunk, left)?;
        };
        Ok(Conn {
            hello: decode_hello(&packets)?,
            number: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
            stream,
            incoming,
            chunk,
            last_id: 0,
            ready: None,
            abandoned: HashSet::new(),
            refusal: None,
        })
    }

    /// Reads once, and takes the answers.
    fn read(&mut self, wait: Duration) -> Result<bool, Cause> {
        let (stream, chunk) = (&mut self.stream, &mut self.chunk);
        let is_new = read_some(stream, &mut self.incoming, chunk, wait)?;
        self.take()?;
        Ok(is_new)
    }

    fn take(&mut self) -> Result<(), Cause> {
        while let Some(packets) = self.incoming.message()? {
            let answer = decode_answer(&packets)?;
            match answer.body {
                Body::Refused(refusal) if answer.id == 0 => {
                    self.refusal = Some(refusal);
                }
                _ if self.abandoned.remove(&answer.id) => {}
                _ if answer.id == self.last_id && self.ready.is_none() => {
                    self.ready = Some(answer);
                }
                _ => {
                    return Err(Cause::Protocol(
                        "an answer that nobody asked for".to_string(),
                    ))
                }
            }
        }
        Ok(())
    }

    /// Looks whether the connection can be used, without waiting.
    pub(crate) fn check(&mut self, end: Instant) -> Result<(), Lost> {
        // After an answer was taken, nothing more may come for its id.
        self.last_id = self.last_id.wrapping_add(1).max(1);
        while self.refusal.is_none() && time_left(end).is_some() {
            match self.read(Duration::ZERO) {
                Ok(true) if self.ready.is_none() => {}
                Ok(true) => {
                    let text = "an answer that nobody asked for";
                    let cause = Cause::Protocol(text.to_string());
                    return Err(self.lost(cause, false));
                }
                Ok(false) => break,
                Err(cause) => return Err(self.lost(cause, false)),
            }
        }
        if self.refusal.is_some() || self.abandoned.len() + 1 >= REQUESTS_MAX {
            let text = "too many requests have no answer";
            return Err(self.lost(Cause::Other(text.to_string()), false));
        }
        Ok(())
    }

    /// Describes the end of the connection. Behind the refusal `denied`, the
    /// daemon has read nothing.
    fn lost(&self, cause: Cause, sent: bool) -> Lost {
        let over = matches!(cause, Cause::Time);
        match (&self.refusal, over) {
            (Some(refusal), false) => Lost {
                cause: Cause::Other(format!(
                    "{}: {}",
                    refusal.status, refusal.text
                )),
                sent: sent && refusal.status != Status::Denied,
                over: false,
                denied: refusal.status == Status::Denied,
                broken: true,
            },
            _ => Lost {
                cause,
                sent,
                over,
                denied: false,
                broken: true,
            },
        }
    }

    /// Sends a request. An error means that the daemon cannot have the whole.
    pub(crate) fn send(
        &mut self,
        data: &[u8],
        end: Instant,
    ) -> Result<(), Lost> {
        let mut at = 0;
        while at < data.len() {
            let mut left = match time_left(end) {
                Some(left) => left,
                None => {
                    let mut lost = self.lost(Cause::Time, false);
                    lost.broken = at > 0;
                    return Err(lost);
                }
            };
            // The daemon may wait until the old answers have been read.
            if !self.abandoned.is_empty() {
                left = left.min(Duration::from_millis(20));
            }
            let written = self
                .stream
                .set_write_timeout(Some(left))
                .and_then(|()| self.stream.write(&data[at..]));
            match written {
                Ok(n) => at += n,
                Err(e) if is_pause(&e) => {
                    if let Err(cause) = self.read(Duration::ZERO) {
                        return Err(self.lost(cause, false));
                    }
                }
                Err(e) => return Err(self.hung_up(e, end)),
            }
        }
        Ok(())
    }

    /// Reads to the end, because the daemon tells the reason before hanging up.
    fn hung_up(&mut self, error: io::Error, end: Instant) -> Lost {
        while self.refusal.is_none() {
            let wait = match time_left(end) {
                Some(left) => left,
                None => break,
            };
            if self.read(wait).is_err() {
                break;
            }
        }
        self.lost(error.into(), false)
    }

    /// Sends a request and waits for the answer. `check` comes before.
    pub(crate) fn ask(
        &mut self,
        encode: Encode,
        updates: usize,
        end: Instant,
    ) -> Result<Answer, Fail> {
        let id = self.last_id;
        self.ready = None;
        let data = encode(id).map_err(Fail::Final)?;
        self.incoming.expect(updates, self.abandoned.is_empty());
        self.send(&data, end).map_err(Fail::Lost)?;
        loop {
            if let Some(answer) = self.ready.take() {
                return Ok(answer);
            }
            let left = match time_left(end) {
                Some(left) => left,
                None => {
                    self.abandoned.insert(id);
                    let mut lost = self.lost(Cause::Time, true);
                    lost.broken = false;
                    return Err(Fail::Lost(lost));
                }
            };
            if let Err(cause) = self.read(left) {
                // The answer may have come just before the end.
                if let Some(answer) = self.ready.take() {
                    return Ok(answer);
                }
                return Err(Fail::Lost(self.lost(cause, true)));
            }
        }
    }

    /// Sends a request whose answer nobody needs.
    pub(crate) fn post(
        &mut self,
        encode: Encode,
        updates: usize,
    ) -> Result<(), Lost> {
        let end = Instant::now() + Duration::from_secs(1);
        self.check(end)?;
        if let Ok(data) = encode(self.last_id) {
            self.incoming.expect(updates, self.abandoned.is_empty());
            self.send(&data, end)?;
            self.abandoned.insert(self.last_id);
        }
        Ok(())
    }
}

fn is_pause(error: &io::Error) -> bool {
    use ErrorKind::*;
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Reads once. Returns false if nothing came in time. Zero: does not wait.
fn read_some(
    stream: &mut UnixStream,
    incoming: &mut Incoming,
    chunk: &mut [u8],
    wait: Duration,
) -> Result<bool, Cause> {
    let got = if wait.is_zero() {
        stream.set_nonblocking(true)?;
        let got = stream.read(chunk);
        stream.set_nonblocking(false)?;
        got
    } else {
        stream.set_read_timeout(Some(wait))?;
        stream.read(chunk)
    };
    match got {
        Ok(0) => Err(Cause::Other("the daemon hung up".to_string())),
        Ok(n) => {
            incoming.feed(&chunk[..n]);
            Ok(true)
        }
        Err(e) if is_pause(&e) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
