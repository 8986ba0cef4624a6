use crate::status::{Error, Outcome, Status};
use crate::types::{
    Change, Hello, Origin, Page, Pair, Position, Record, Report,
    Result as RefResult, Text, Token,
};
use crate::wire::{
    is_hex, is_identity_name, CHANGES_MAX, DEADLINE_MAX_MS, NAME_MAX,
    PROTOCOL_VERSION, UPDATES_MAX,
};
use std::collections::BTreeMap;
use std::time::Duration;

type Parsed<T> = Result<T, Error>;

/// The body of the answer `refused`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub status: Status,
    /// The reason for people.
    pub text: Text,
    /// The time to wait before another attempt.
    pub retry_after: Option<Duration>,
}

/// The kind of an answer, and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the kinds are those of PROTOCOL.md, "Answers"
pub enum Body {
    Results(Report),
    Prepared {
        results: Vec<RefResult>,
        rewrites_packed: bool,
    },
    Pending,
    NeverSeen,
    Expired,
    Refused(Refusal),
    Pong,
    Records(Page),
    Pairs(Vec<Pair>),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The id of the request, or 0 for a refusal of the connection.
    pub id: u32,
    /// The id of the transaction.
    pub txid: Option<String>,
    /// The kind and the body.
    pub body: Body,
}

fn number(s: &[u8], least: u64, most: u64) -> Parsed<u64> {
    let is_plain = s.iter().all(u8::is_ascii_digit)
        && (s.len() == 1 || s.first() != Some(&b'0'));
    std::str::from_utf8(s)
        .ok()
        .filter(|_| is_plain)
        .and_then(|s| s.parse().ok())
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| Error::malformed("number"))
}

fn number32(s: &[u8], least: u64) -> Parsed<u32> {
    Ok(number(s, least, u32::MAX.into())? as u32)
}

fn hex(s: &[u8], length: usize) -> Parsed<String> {
    if !is_hex(s, length) {
        return Err(Error::malformed("id"));
    }
    Ok(String::from_utf8_lossy(s).into_owned())
}

fn text(s: &[u8]) -> Parsed<Text> {
    if s.contains(&0) {
        return Err(Error::malformed("text"));
    }
    Ok(s.into())
}

fn status(s: &[u8]) -> Parsed<Status> {
    Status::of_word(s).ok_or_else(|| Error::malformed("status"))
}

/// Reads an id, or nothing. All ids of a message have one length.
fn oid(s: &[u8], length: &mut usize) -> Parsed<Option<String>> {
    if s.is_empty() {
        return Ok(None);
    }
    if *length == 0 {
        *length = if s.len() == 64 { 64 } else { 40 };
    }
    hex(s, *length).map(Some)
}

/// Splits at the first separator.
fn cut(s: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match s.iter().position(|&c| c == separator) {
        Some(at) => (&s[..at], Some(&s[at + 1..])),
        None => (s, None),
    }
}

fn value_of<'a>(line: &'a [u8], key: &str) -> Option<&'a [u8]> {
    line.strip_prefix(key.as_bytes())?.strip_prefix(b" ")
}

/// Lines of a body, to be taken by their keys.
struct Lines<'a>(&'a [Vec<u8>]);

impl<'a> Lines<'a> {
    fn take(&mut self, key: &str) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_first()?;
        let value = value_of(first, key)?;
        self.0 = rest;
        Some(value)
    }

    fn need(&mut self, key: &str) -> Parsed<&'a [u8]> {
        self.take(key).ok_or_else(|| Error::malformed(key))
    }

    /// Takes a flag.
    fn flag(&mut self, key: &str) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if first == key.as_bytes() => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn end(&self, what: &str) -> Parsed<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Error::malformed(what))
    }
}

/// Reads "<name>=<number> <name>=<number>".
fn named(s: &[u8], most: u64, names: [&str; 2]) -> Parsed<(u64, u64)> {
    let read = |field: &[u8], name: &str| match cut(field, b'=') {
        (key, Some(value)) if key == name.as_bytes() => number(value, 0, most),
        _ => Err(Error::malformed("hello")),
    };
    let (first, second) = cut(s, b' ');
    let second = second.ok_or_else(|| Error::malformed("hello"))?;
    Ok((read(first, names[0])?, read(second, names[1])?))
}

/// Decodes the first message of a daemon.
pub fn decode_hello(packets: &[Vec<u8>]) -> Result<Hello, Error> {
    let wrong = || Error::malformed("hello");
    let not_refd = || Error::Protocol("not a refd".to_string());
    let (first, rest) = packets.split_first().ok_or_else(not_refd)?;
    let version = first
        .strip_prefix(b"refd version=")
        .ok_or_else(not_refd)
        .and_then(|version| number(version, 1, u32::MAX.into()))?;
    if version != PROTOCOL_VERSION {
        return Err(Error::Protocol(format!(
            "the daemon speaks version {version} of refd's protocol, this \
             program version {PROTOCOL_VERSION}"
        )));
    }
    const ONCE: [&str; 6] =
        ["software", "state", "horizon", "pid", "limit", "progress"];
    let mut found: BTreeMap<&str, &[u8]> = BTreeMap::new();
    let mut capabilities = Vec::new();
    for line in rest {
        let (key, value) = cut(line, b' ');
        let value = value.unwrap_or_default();
        if key == b"capability" {
            capabilities.push(value.into());
        }
        for one in ONCE {
            if key == one.as_bytes() && found.insert(one, value).is_some() {
                return Err(wrong());
            }
        }
    }
    let get = |key| found.get(key).copied().ok_or_else(wrong);
    let software = text(get("software")?)?;
    let state = String::from_utf8_lossy(get("state")?).into_owned();
    if software.len() > 63
        || !matches!(&*state, "recovering" | "serving" | "draining")
    {
        return Err(wrong());
    }
    let limit = named(get("limit")?, u32::MAX.into(), ["updates", "bytes"])?;
    let progress = match found.get("progress") {
        Some(value) => Some(named(value, u64::MAX, ["done", "total"])?),
        None => None,
    };
    Ok(Hello {
        version: version as u32,
        software,
        state,
        horizon_ms: number(get("horizon")?, 0, u64::MAX)?,
        pid: number(get("pid")?, 0, u64::MAX)?,
        max_updates: limit.0 as u32,
        max_bytes: limit.1 as u32,
        progress,
        capabilities,
    })
}

/// Reads the text, or the detail, behind the other fields.
fn words(fields: &[&[u8]]) -> Parsed<(Text, Vec<Text>)> {
    match fields {
        [one] if one.first() != Some(&1) => Ok((text(one)?, Vec::new())),
        [first, detail @ ..]
            if first.is_empty()
                && detail.first().map_or(false, |word| !word.is_empty())
                && !detail.iter().any(|word| word.contains(&1)) =>
        {
            let detail = detail.iter().map(|&word| word.into()).collect();
            Ok((Text::default(), detail))
        }
        _ => Err(Error::malformed("text")),
    }
}

fn split_fields(line: &[u8], least: usize) -> Parsed<Vec<&[u8]>> {
    let fields: Vec<&[u8]> = line.split(|&c| c == 0).collect();
    if fields.len() < least {
        return Err(Error::malformed("line"));
    }
    Ok(fields)
}

fn result(line: &[u8], length: &mut usize) -> Parsed<RefResult> {
    let fields = split_fields(line, 4)?;
    let code = match fields[0] {
        b"ok" => Status::Ok,
        failure => value_of(failure, "ng")
            .and_then(Status::of_word)
            .filter(|&code| code != Status::Ok)
            .ok_or_else(|| Error::malformed("result"))?,
    };
    let (text, detail) = words(&fields[3..])?;
    Ok(RefResult {
        name: fields[1].into(),
        status: code,
        found: oid(fields[2], length)?,
        text,
        detail,
    })
}

fn results(lines: &[Vec<u8>]) -> Parsed<Vec<RefResult>> {
    if lines.len() > UPDATES_MAX {
        return Err(Error::malformed("number of results"));
    }
    let mut length = 0;
    lines.iter().map(|line| result(line, &mut length)).collect()
}

fn report(txid: &str, body: &[Vec<u8>]) -> Parsed<Report> {
    let wrong = || Error::malformed("outcome");
    let (last, lines) = body.split_last().ok_or_else(wrong)?;
    let value = value_of(last, "outcome").ok_or_else(wrong)?;
    let (word, rest) = cut(value, b' ');
    let (updates, token) = cut(rest.ok_or_else(wrong)?, b' ');
    let outcome = Outcome::of_word(word)
        .filter(|outcome| {
            use Outcome::*;
            matches!(outcome, Committed | Partial | Rejected | Unknown)
        })
        .ok_or_else(wrong)?;
    let token = match token.map(|token| cut(token, b':')) {
        Some((log, lsn)) => Some(Token {
            log: hex(log, 32)?,
            lsn: number(lsn.ok_or_else(wrong)?, 1, u64::MAX)?,
        }),
        None => None,
    };
    let least = lines.len() as u64;
    Ok(Report {
        txid: txid.to_string(),
        outcome,
        results: results(lines)?,
        updates: number(updates, least, UPDATES_MAX as u64)? as usize,
        token,
    })
}

fn refused(body: &[Vec<u8>]) -> Parsed<(Option<String>, Refusal)> {
    let wrong = || Error::malformed("refusal");
    let mut lines = Lines(body);
    let txid = match lines.take("txid") {
        Some(txid) => Some(hex(txid, 32)?),
        None => None,
    };
    if txid
        .as_ref()
        .map_or(false, |t| t.bytes().all(|c| c == b'0'))
    {
        return Err(wrong());
    }
    let code = status(lines.need("status")?)?;
    let why = text(lines.take("text").unwrap_or_default())?;
    let retry_after = match lines.take("retry-after") {
        Some(ms) => Some(number(ms, 1, DEADLINE_MAX_MS)?),
        None => None,
    };
    if code == Status::Ok || (retry_after.is_some() && code != Status::Busy) {
        return Err(wrong());
    }
    lines.end("refusal")?;
    let refusal = Refusal {
        status: code,
        text: why,
        retry_after: retry_after.map(Duration::from_millis),
    };
    Ok((txid, refusal))
}

fn pair(line: &Vec<u8>) -> Parsed<Pair> {
    let rest = value_of(line, "pair").unwrap_or_default();
    match cut(rest, b' ') {
        (key, Some(value)) if !key.is_empty() => Ok((text(key)?, text(value)?)),
        _ => Err(Error::malformed("pair")),
    }
}

fn change(value: &[u8], length: &mut usize) -> Parsed<Change> {
    let fields = split_fields(value, 6)?;
    let (place, code) = cut(fields[0], b' ');
    let (text, detail) = words(&fields[5..])?;
    Ok(Change {
        number: number32(place, 1)?,
        status: status(code.unwrap_or_default())?,
        name: fields[1].into(),
        old: oid(fields[2], length)?,
        new: oid(fields[3], length)?,
        target: fields[4].into(),
        text,
        detail,
    })
}

fn some_text(value: Option<&[u8]>) -> Parsed<Option<Text>> {
    match value {
        Some(b"") => Err(Error::malformed("record")),
        Some(value) => text(value).map(Some),
        None => Ok(None),
    }
}

fn record(lines: &mut Lines, head: &[u8]) -> Parsed<Record> {
    let fields: Vec<&[u8]> = head.splitn(6, |&c| c == b' ').collect();
    if fields.len() != 6 {
        return Err(Error::malformed("record"));
    }
    let voids = match lines.take("voids") {
        Some(lsn) => Some(number(lsn, 1, u64::MAX)?),
        None => None,
    };
    let origin = match lines.take("origin") {
        None => None,
        Some(b"gate") => Some(Origin::Gate),
        Some(b"seen") => Some(Origin::Seen),
        Some(_) => return Err(Error::malformed("origin")),
    };
    let mut r = Record {
        lsn: number(fields[0], 1, u64::MAX)?,
        time_ms: number(fields[1], 0, u64::MAX)?,
        uid: number32(fields[2], 0)?,
        pid: number(fields[3], 0, u64::MAX)?,
        txid: hex(fields[4], 32)?,
        path: text(fields[5])?,
        voids,
        origin,
        committer: some_text(lines.take("committer"))?,
        message: some_text(lines.take("message"))?,
        identity: BTreeMap::new(),
        changes: Vec::new(),
    };
    let mut last = String::new();
    while let Some(identity) = lines.take("identity") {
        let (name, value) = cut(identity, b'=');
        let value = text(value.unwrap_or_default())?;
        let is_name = is_identity_name(name);
        let name = String::from_utf8_lossy(name).into_owned();
        if !is_name
            || name <= last
            || value.is_empty()
            || value.len() > NAME_MAX
            || r.identity.len() == 8
        {
            return Err(Error::malformed("identity"));
        }
        last = name.clone();
        r.identity.insert(name, value);
    }
    let mut length = 0;
    while let Some(value) = lines.take("change") {
        r.changes.push(change(value, &mut length)?);
    }
    if r.changes.is_empty() {
        return Err(Error::malformed("record"));
    }
    Ok(r)
}

fn page(body: &[Vec<u8>]) -> Parsed<Page> {
    let mut lines = Lines(body);
    let journal = hex(lines.need("journal")?, 32)?;
    let gap = match lines.take("gap") {
        Some(lsn) => Some(number(lsn, 0, u64::MAX)?),
        None => None,
    };
    let mut records = Vec::new();
    let mut changes = 0;
    while let Some(head) = lines.take("record") {
        let r = record(&mut lines, head)?;
        changes += r.changes.len();
        records.push(r);
    }
    if changes > CHANGES_MAX {
        return Err(Error::malformed("number of changes"));
    }
    let (lsn, place) = cut(lines.need("next")?, b' ');
    let next = Position {
        lsn: number(lsn, 0, u64::MAX)?,
        number: match place {
            Some(place) => Some(number32(place, 1)?),
            None => None,
        },
    };
    let more = lines.flag("more");
    lines.end("page")?;
    Ok(Page {
        journal,
        records,
        next,
        more,
        gap,
    })
}

/// Decodes an answer.
pub fn decode_answer(packets: &[Vec<u8>]) -> Result<Answer, Error> {
    let wrong = || Error::malformed("answer");
    let (head, body) = packets.split_first().ok_or_else(wrong)?;
    let rest = value_of(head, "answer").ok_or_else(wrong)?;
    let (id, kind) = cut(rest, b' ');
    let kind = kind.ok_or_else(wrong)?;
    let least = u64::from(kind != b"refused");
    let id = number32(id, least)?;
    let mut lines = Lines(body);
    let mut txid = None;
    if !matches!(kind, b"refused" | b"pong" | b"records" | b"pairs") {
        txid = Some(hex(lines.need("txid")?, 32)?);
    }
    let body = match kind {
        b"results" => Body::Results(report(
            txid.as_deref().unwrap_or_default(),
            std::mem::take(&mut lines.0),
        )?),
        b"prepared" => {
            let mut body = std::mem::take(&mut lines.0);
            let mut rewrites_packed = false;
            if let Some((last, before)) = body.split_last() {
                if last == b"rewrites-packed" {
                    rewrites_packed = true;
                    body = before;
                }
            }
            Body::Prepared {
                results: results(body)?,
                rewrites_packed,
            }
        }
        b"pending" => Body::Pending,
        b"never-seen" => Body::NeverSeen,
        b"expired" => Body::Expired,
        b"refused" => {
            let (about, refusal) = refused(std::mem::take(&mut lines.0))?;
            txid = about;
            Body::Refused(refusal)
        }
        b"pong" => Body::Pong,
        b"pairs" => {
            let body = std::mem::take(&mut lines.0);
            Body::Pairs(body.iter().map(pair).collect::<Parsed<_>>()?)
        }
        b"records" => Body::Records(page(std::mem::take(&mut lines.0))?),
        _ => return Err(wrong()),
    };
    lines.end("answer")?;
    Ok(Answer { id, txid, body })
}
