//! The messages of the protocol. Programs need only [`crate::Client`].

pub use crate::answer::{decode_answer, decode_hello, Answer, Body, Refusal};
use crate::status::{Error, Status};
use crate::types::{
    process_umask, Command, Old, Position, Repository, Selection, Transaction,
    Update,
};
use std::time::Duration;

// The limits of the protocol (proto/limits.h).
pub(crate) const PROTOCOL_VERSION: u64 = 2;
const PAYLOAD_MAX: usize = 65516;
pub(crate) const REQUESTS_MAX: usize = 256;
pub(crate) const UPDATES_MAX: usize = 100_000;
pub(crate) const CHANGES_MAX: usize = 1000;
const REQUEST_BYTES_MAX: usize = 64 << 20;
pub(crate) const NAME_MAX: usize = 1024;
const TEXT_MAX: usize = 8192;
pub(crate) const DEADLINE_MAX_MS: u64 = 3_600_000;
const HELLO_BYTES_MAX: usize = 64 << 10;
const ANSWER_BYTES: usize = 8 << 20;
const RESULT_BYTES: usize = 10 << 10;
const ANSWER_BYTES_MAX: usize = 256 << 20;
const MESSAGE_PACKETS_MAX: usize = 2 * UPDATES_MAX;

/// Collects received bytes, and cuts them into messages.
#[derive(Debug)]
pub struct Incoming {
    longest: usize, // the bytes of a message
    bytes: Vec<u8>,
    at: usize, // the bytes in front are used up
    packets: Vec<Vec<u8>>,
    total: usize,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming {
            longest: HELLO_BYTES_MAX,
            bytes: Vec::new(),
            at: 0,
            packets: Vec::new(),
            total: 0,
        }
    }
}

impl Incoming {
    /// A request is sent, whose answer has results for at most `updates`.
    /// Other requests are in flight, unless it is `alone`.
    pub fn expect(&mut self, updates: usize, alone: bool) {
        let most = updates.min(UPDATES_MAX) * RESULT_BYTES + ANSWER_BYTES;
        let most = most.min(ANSWER_BYTES_MAX);
        self.longest = if alone { most } else { most.max(self.longest) };
    }

    /// Adds received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the payloads of the next message, if it is complete.
    pub fn message(&mut self) -> Result<Option<Vec<Vec<u8>>>, Error> {
        loop {
            let rest = &self.bytes[self.at..];
            if rest.len() < 4 {
                return Ok(None);
            }
            let length = packet_length(&rest[..4])?;
            if length == 0 {
                self.at += 4;
                self.total = 0;
                return Ok(Some(std::mem::take(&mut self.packets)));
            }
            if self.total + length > self.longest
                || self.packets.len() == MESSAGE_PACKETS_MAX
            {
                return Err(Error::Protocol(
                    "the message is too large".to_string(),
                ));
            }
            if rest.len() < length {
                return Ok(None);
            }
            self.packets.push(rest[4..length].to_vec());
            self.total += length;
            self.at += length;
        }
    }
}

fn packet_length(digits: &[u8]) -> Result<usize, Error> {
    let mut length = 0;
    for &digit in digits {
        let value = char::from(digit).to_digit(16);
        length = length * 16
            + value.ok_or_else(|| Error::malformed("packet"))? as usize;
    }
    if length > PAYLOAD_MAX + 4 || (1..=4).contains(&length) {
        return Err(Error::malformed("packet"));
    }
    Ok(length)
}

// ---- requests ----

type Put = Result<(), Error>;

fn bad(text: impl Into<String>) -> Error {
    Error::rejected(Status::BadRequest, text)
}

pub(crate) fn is_hex(s: &[u8], length: usize) -> bool {
    s.len() == length
        && s.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

pub(crate) fn is_identity_name(name: &[u8]) -> bool {
    (1..=64).contains(&name.len())
        && !name[0].is_ascii_digit()
        && name
            .iter()
            .all(|c| matches!(c, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

fn checked(value: &[u8], most: usize) -> Result<&[u8], Error> {
    if value.contains(&0) {
        return Err(bad("a value has a NUL"));
    }
    if value.len() > most {
        return Err(bad(format!(
            "{} bytes where {most} are the limit",
            value.len()
        )));
    }
    Ok(value)
}

fn hex(value: &str, length: usize) -> Result<&[u8], Error> {
    if !is_hex(value.as_bytes(), length) {
        return Err(bad(format!("{value:?} is not an id of {length} digits")));
    }
    Ok(value.as_bytes())
}

struct Writer {
    out: Vec<u8>,
    bytes: usize,
}

impl Writer {
    fn new(verb: &str, id: u32) -> Result<Writer, Error> {
        let mut w = Writer {
            out: Vec::new(),
            bytes: 0,
        };
        w.put(format!("{verb} {id}").as_bytes())?;
        Ok(w)
    }

    fn put(&mut self, payload: &[u8]) -> Put {
        self.bytes += payload.len();
        if self.bytes > REQUEST_BYTES_MAX {
            return Err(bad("the request has more than 64 MiB"));
        }
        if payload.is_empty() || payload.len() > PAYLOAD_MAX {
            return Err(bad(format!(
                "a packet cannot have {} bytes",
                payload.len()
            )));
        }
        let length = format!("{:04x}", payload.len() + 4);
        self.out.extend_from_slice(length.as_bytes());
        self.out.extend_from_slice(payload);
        Ok(())
    }

    fn end(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"0000");
        self.out
    }

    fn header(&mut self, key: &str, value: &[u8]) -> Put {
        self.put(&[key.as_bytes(), b" ", value].concat())
    }

    fn number(&mut self, key: &str, value: u64) -> Put {
        self.header(key, value.to_string().as_bytes())
    }

    fn some(
        &mut self,
        key: &str,
        value: Option<impl AsRef<[u8]>>,
        most: usize,
    ) -> Put {
        match value {
            Some(value) => self.header(key, checked(value.as_ref(), most)?),
            None => Ok(()),
        }
    }

    fn flag(&mut self, key: &str, set: bool) -> Put {
        if set {
            self.put(key.as_bytes())?;
        }
        Ok(())
    }

    fn millis(&mut self, key: &str, time: Option<Duration>, least: u64) -> Put {
        if let Some(time) = time {
            let ms = time.as_millis();
            if ms < u128::from(least) || ms > u128::from(DEADLINE_MAX_MS) {
                return Err(bad(format!(
                    "{key}: {time:?} is not between {least} ms and an hour"
                )));
            }
            self.number(key, ms as u64)?;
        }
        Ok(())
    }

    fn git_dir(&mut self, repo: &Repository) -> Put {
        if repo.git_dir.first() != Some(&b'/') {
            return Err(bad(format!(
                "git-dir {:?} is not absolute",
                repo.git_dir
            )));
        }
        self.header("git-dir", checked(&repo.git_dir, 4095)?)
    }

    fn common_dir(&mut self, repo: &Repository) -> Put {
        let value = format!("{} {}", repo.common_dev, repo.common_ino);
        self.header("common-dir", value.as_bytes())
    }

    fn identity(&mut self, t: &Transaction) -> Put {
        if t.identity.len() > 8 {
            return Err(bad("more than 8 identity variables"));
        }
        for (name, value) in &t.identity {
            if !is_identity_name(name.as_bytes()) || value.is_empty() {
                return Err(bad(format!("bad identity variable {name:?}")));
            }
            let value = checked(value, NAME_MAX)?;
            let line = [name.as_bytes(), b"=", value].concat();
            self.header("identity", &line)?;
        }
        Ok(())
    }

    fn update(&mut self, u: &Update, length: usize) -> Put {
        let name = |s| checked(s, NAME_MAX);
        let old = |old: &'_ Option<String>| match old {
            Some(old) => hex(old, length).map(<[u8]>::to_vec),
            None => Ok(Vec::new()),
        };
        let target = |old: &'_ Option<crate::Text>| match old {
            // On the wire: any target.
            Some(old) if old.is_empty() => Err(bad("an empty old target")),
            Some(old) => checked(old, NAME_MAX).map(<[u8]>::to_vec),
            None => Ok(Vec::new()),
        };
        self.flag("option no-deref", u.no_deref)?;
        let (verb, fields) = match &u.command {
            Command::Update { oid, old: was } => {
                ("update", vec![hex(oid, length)?.to_vec(), old(was)?])
            }
            Command::Create { oid } => {
                ("create", vec![hex(oid, length)?.to_vec()])
            }
            Command::Delete { old: was } => ("delete", vec![old(was)?]),
            Command::Verify { old: was } => ("verify", vec![old(was)?]),
            Command::SymrefUpdate { target, old } => {
                let mut fields = vec![name(target)?.to_vec()];
                match old {
                    Old::Any => {}
                    Old::Target(was) if was.is_empty() => {
                        return Err(bad("an empty old target"));
                    }
                    Old::Target(was) => {
                        fields.push(b"ref".to_vec());
                        fields.push(name(was)?.to_vec());
                    }
                    Old::Oid(was) => {
                        fields.push(b"oid".to_vec());
                        fields.push(hex(was, length)?.to_vec());
                    }
                }
                ("symref-update", fields)
            }
            Command::SymrefCreate { target } => {
                ("symref-create", vec![name(target)?.to_vec()])
            }
            Command::SymrefDelete { old } => {
                ("symref-delete", vec![target(old)?])
            }
            Command::SymrefVerify { old } => {
                ("symref-verify", vec![target(old)?])
            }
        };
        let mut line = [verb.as_bytes(), b" ", name(&u.name)?].concat();
        for field in fields {
            line.push(0);
            line.extend_from_slice(&field);
        }
        self.put(&line)
    }

    fn position(&mut self, key: &str, position: Option<Position>) -> Put {
        match position {
            Some(Position { lsn, number: None }) => self.number(key, lsn),
            Some(Position {
                lsn,
                number: Some(n),
            }) => self.header(key, format!("{lsn} {n}").as_bytes()),
            None => Ok(()),
        }
    }
}

/// Encodes a request with an id or without any header.
pub fn encode_simple(
    verb: &str,
    id: u32,
    txid: &str,
) -> Result<Vec<u8>, Error> {
    let mut w = Writer::new(verb, id)?;
    if matches!(verb, "commit" | "abort" | "cancel" | "query") {
        w.header("txid", hex(txid, 32)?)?;
    }
    Ok(w.end())
}

/// Encodes a `pack` or `look` request.
pub fn encode_for_repository(
    verb: &str,
    id: u32,
    repo: &Repository,
) -> Result<Vec<u8>, Error> {
    let mut w = Writer::new(verb, id)?;
    w.git_dir(repo)?;
    w.common_dir(repo)?;
    Ok(w.end())
}

fn format_of(t: &Transaction) -> &str {
    if let Some(format) = &t.repository.object_format {
        return format;
    }
    for u in &t.updates {
        let oids = match &u.command {
            Command::Update { oid, old } => [Some(oid), old.as_ref()],
            Command::Create { oid } => [Some(oid), None],
            Command::Delete { old } | Command::Verify { old } => {
                [old.as_ref(), None]
            }
            Command::SymrefUpdate {
                old: Old::Oid(old), ..
            } => [Some(old), None],
            _ => [None, None],
        };
        if let Some(oid) = oids.into_iter().flatten().next() {
            return if oid.len() == 64 { "sha256" } else { "sha1" };
        }
    }
    "sha1"
}

/// Encodes a transaction or a session. The deadline is that of the message.
pub fn encode_transaction(
    verb: &str,
    id: u32,
    t: &Transaction,
    deadline: Option<Duration>,
) -> Result<Vec<u8>, Error> {
    if t.updates.len() > UPDATES_MAX {
        return Err(bad(format!("more than {UPDATES_MAX} updates")));
    }
    let umask = match t.umask {
        Some(umask) => umask,
        None => process_umask().map_err(|e| bad(e.to_string()))?,
    };
    if umask > 0o777 {
        return Err(bad(format!("umask {umask:o}")));
    }
    let format = format_of(t);
    let mut w = Writer::new(verb, id)?;
    w.header("txid", hex(t.txid(), 32)?)?;
    w.git_dir(&t.repository)?;
    w.common_dir(&t.repository)?;
    w.some("object-format", Some(format), NAME_MAX)?;
    w.flag("atomic", t.atomic)?;
    w.flag("create-reflog", t.create_reflog)?;
    w.flag("push", t.push)?;
    w.some("durability", t.durability.as_deref(), NAME_MAX)?;
    w.some("level", t.level.as_deref(), NAME_MAX)?;
    w.millis("deadline", deadline, 1)?;
    w.header("umask", format!("{umask:04o}").as_bytes())?;
    w.some("message", t.message.as_deref(), TEXT_MAX)?;
    w.some("committer", t.committer.as_deref(), NAME_MAX)?;
    let log = t.log_all_ref_updates.as_deref();
    w.some("log-all-ref-updates", log, NAME_MAX)?;
    let shared = t.shared_repository.as_deref();
    w.some("shared-repository", shared, NAME_MAX)?;
    w.millis("ref-lock-timeout", t.ref_lock_timeout, 0)?;
    w.millis("packed-refs-timeout", t.packed_refs_timeout, 0)?;
    w.some("trace2-sid", t.trace2_sid.as_deref(), NAME_MAX)?;
    w.identity(t)?;
    w.out.extend_from_slice(b"0001");
    let length = if format == "sha256" { 64 } else { 40 };
    for u in &t.updates {
        w.update(u, length)?;
    }
    Ok(w.end())
}

/// Encodes a log or a watch.
pub fn encode_history(
    verb: &str,
    id: u32,
    s: &Selection,
) -> Result<Vec<u8>, Error> {
    let mut w = Writer::new(verb, id)?;
    if let Some(txid) = &s.txid {
        w.header("txid", hex(txid, 32)?)?;
    }
    if let Some(repo) = &s.repository {
        w.git_dir(repo)?;
        if repo.common_ino != 0 {
            w.common_dir(repo)?;
        }
    }
    w.millis("deadline", s.wait, 1)?;
    if s.refs.len() > 16 {
        return Err(bad("more than 16 patterns of refs"));
    }
    for pattern in &s.refs {
        w.header("ref", checked(pattern, NAME_MAX)?)?;
    }
    if let Some(uid) = s.uid {
        w.number("uid", uid.into())?;
    }
    w.some("user", s.user.as_deref(), NAME_MAX)?;
    for (key, value) in [("since", s.since_ms), ("until", s.until_ms)] {
        if let Some(value) = value {
            w.number(key, value)?;
        }
    }
    if let Some(journal) = &s.journal {
        w.header("journal", hex(journal, 32)?)?;
    }
    w.position("after", s.after)?;
    w.position("before", s.before)?;
    if let Some(limit) = s.limit {
        if limit as usize > CHANGES_MAX {
            return Err(bad(format!("a limit of {limit}")));
        }
        w.number("limit", limit.into())?;
    }
    w.flag("reverse", s.reverse)?;
    w.flag("all", s.all)?;
    w.flag("origin", s.origin)?;
    Ok(w.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message may not be larger than the limit, whatever comes.
    #[test]
    fn message_is_bounded() {
        let mut incoming = Incoming::default();
        incoming.expect(0, true);
        let flood = b"0005x".repeat(1000);
        for _ in 0..MESSAGE_PACKETS_MAX / 1000 {
            incoming.feed(&flood);
            assert_eq!(incoming.message(), Ok(None));
        }
        incoming.feed(&flood);
        assert!(matches!(incoming.message(), Err(Error::Protocol(_))));
    }

    /// An empty old target must not become "any target".
    #[test]
    fn empty_old_targets_are_refused() {
        let old = Some(crate::Text::from(""));
        for command in [
            Command::SymrefDelete { old: old.clone() },
            Command::SymrefVerify { old },
        ] {
            let mut t = Transaction::resume(
                &crate::Repository {
                    git_dir: "/x".into(),
                    ..crate::Repository::default()
                },
                &"0".repeat(32),
            );
            t.umask = Some(0o22);
            t.updates.push(Update {
                name: "HEAD".into(),
                command,
                no_deref: true,
            });
            let encoded = encode_transaction("transaction", 1, &t, None);
            assert!(matches!(encoded, Err(Error::Rejected(_))));
        }
    }

    #[test]
    fn message_in_pieces() {
        let mut incoming = Incoming::default();
        for byte in b"0005x0006yz000" {
            incoming.feed(&[*byte]);
            assert_eq!(incoming.message(), Ok(None));
        }
        incoming.feed(b"00005");
        let whole = vec![b"x".to_vec(), b"yz".to_vec()];
        assert_eq!(incoming.message(), Ok(Some(whole)));
        assert_eq!(incoming.message(), Ok(None));
        for bad in ["0001", "0004", "+005", "fff1"] {
            let mut incoming = Incoming::default();
            incoming.feed(bad.as_bytes());
            assert!(incoming.message().is_err(), "{bad}");
        }
    }
}
