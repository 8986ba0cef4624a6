//! The words of the runners: tests/clients/README.md.

use refd::wire::{self, Answer, Body, Incoming};
use refd::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// The percent-decoded values of `key=value` words.
pub struct Words(BTreeMap<String, Vec<u8>>);

fn unescaped(value: &str) -> Vec<u8> {
    let mut rest = value.bytes();
    let mut found = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            found.push(byte);
            continue;
        }
        let digits = [rest.next().unwrap(), rest.next().unwrap()];
        let digits = std::str::from_utf8(&digits).unwrap();
        found.push(u8::from_str_radix(digits, 16).unwrap());
    }
    found
}

impl Words {
    pub fn parse<'a>(list: impl Iterator<Item = &'a str>) -> Words {
        let split = |word: &str| {
            let (key, value) = word.split_once('=').unwrap();
            (key.to_string(), unescaped(value))
        };
        Words(list.map(split).collect())
    }

    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub fn bytes(&self, key: &str) -> Option<Text> {
        self.0.get(key).map(|value| Text(value.clone()))
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.bytes(key).map(|value| value.to_string())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.text(key).map(|value| value.parse().unwrap())
    }

    fn number32(&self, key: &str) -> Option<u32> {
        self.number(key).map(|n| n.try_into().unwrap())
    }

    pub fn millis(&self, key: &str) -> Option<Duration> {
        self.number(key).map(Duration::from_millis)
    }

    pub fn repository(&self) -> Repository {
        let mut repo = match self.text("repo") {
            Some(path) => Repository::open(path).unwrap(),
            None => Repository {
                git_dir: self.bytes("git-dir").unwrap(),
                common_dev: self.number("common-dir.dev").unwrap_or(0),
                common_ino: self.number("common-dir.ino").unwrap_or(0),
                object_format: None,
            },
        };
        repo.object_format = self.text("object-format");
        repo
    }

    fn update(&self, at: &str) -> Update {
        let text = |key: &str| self.text(&format!("{at}{key}"));
        let bytes = |key: &str| self.bytes(&format!("{at}{key}"));
        let old = text("old-oid");
        let command = match text("command").unwrap().as_str() {
            "update" => Command::Update {
                oid: text("oid").unwrap(),
                old,
            },
            "create" => Command::Create {
                oid: text("oid").unwrap(),
            },
            "delete" => Command::Delete { old },
            "verify" => Command::Verify { old },
            "symref-update" => Command::SymrefUpdate {
                target: bytes("target").unwrap(),
                old: match (bytes("old-target"), old) {
                    (Some(target), _) => Old::Target(target),
                    (None, Some(oid)) => Old::Oid(oid),
                    (None, None) => Old::Any,
                },
            },
            "symref-create" => Command::SymrefCreate {
                target: bytes("target").unwrap(),
            },
            "symref-delete" => Command::SymrefDelete {
                old: bytes("old-target"),
            },
            "symref-verify" => Command::SymrefVerify {
                old: bytes("old-target"),
            },
            other => panic!("the command {other}"),
        };
        Update {
            name: bytes("ref").unwrap(),
            command,
            no_deref: self.has(&format!("{at}no-deref")),
        }
    }

    pub fn transaction(&self) -> Transaction {
        let repo = self.repository();
        let mut t = match self.text("txid") {
            Some(txid) => Transaction::resume(&repo, &txid),
            None => Transaction::new(&repo).unwrap(),
        };
        t.atomic = self.has("atomic");
        t.create_reflog = self.has("create-reflog");
        t.push = self.has("push");
        t.message = self.bytes("message");
        t.committer = self.bytes("committer");
        t.durability = self.text("durability");
        t.level = self.text("level.kind");
        if let (Some(level), Some(nodes)) =
            (&mut t.level, self.text("level.nodes"))
        {
            *level += &format!("={nodes}");
        }
        t.deadline = self.millis("deadline");
        t.umask = self
            .text("umask")
            .map(|umask| u32::from_str_radix(&umask, 8).unwrap());
        t.log_all_ref_updates = self.bytes("log-all-ref-updates");
        t.shared_repository = self.bytes("shared-repository");
        t.ref_lock_timeout = self.millis("ref-lock-timeout");
        t.packed_refs_timeout = self.millis("packed-refs-timeout");
        t.trace2_sid = self.bytes("trace2-sid");
        for (key, value) in &self.0 {
            if let Some(name) = key.strip_prefix("identity.") {
                t.identity.insert(name.to_string(), Text(value.clone()));
            }
        }
        while self.has(&format!("updates.{}.command", t.updates.len())) {
            let at = format!("updates.{}.", t.updates.len());
            t.updates.push(self.update(&at));
        }
        t
    }

    fn position(&self, key: &str) -> Option<Position> {
        self.number(&format!("{key}.lsn")).map(|lsn| Position {
            lsn,
            number: self.number32(&format!("{key}.change")),
        })
    }

    pub fn selection(&self) -> Selection {
        let has_repo = self.has("repo") || self.has("git-dir");
        let mut s = Selection {
            repository: has_repo.then(|| self.repository()),
            refs: Vec::new(),
            txid: self.text("txid"),
            uid: self.number32("uid"),
            user: self.bytes("user"),
            since_ms: self.number("since"),
            until_ms: self.number("until"),
            journal: self.text("journal"),
            after: self.position("after"),
            before: self.position("before"),
            limit: self.number32("limit"),
            reverse: self.has("reverse"),
            all: self.has("all"),
            origin: self.has("origin"),
            wait: self.millis("deadline"),
        };
        while let Some(one) = self.bytes(&format!("ref.{}", s.refs.len())) {
            s.refs.push(one);
        }
        s
    }

    pub fn encode(&self) -> std::result::Result<Vec<u8>, Error> {
        let verb = self.text("verb").unwrap();
        let id = self.number32("id").unwrap();
        match verb.as_str() {
            "transaction" | "session" => {
                let t = self.transaction();
                wire::encode_transaction(&verb, id, &t, t.deadline)
            }
            "log" | "watch" => {
                wire::encode_history(&verb, id, &self.selection())
            }
            _ if self.has("git-dir") => {
                wire::encode_for_repository(&verb, id, &self.repository())
            }
            _ => {
                let txid = self.text("txid").unwrap_or_default();
                wire::encode_simple(&verb, id, &txid)
            }
        }
    }
}

/// The words of an answer.
#[derive(Default)]
pub struct Fields(pub Vec<String>);

impl Fields {
    pub fn add(&mut self, key: impl AsRef<str>, value: impl AsRef<[u8]>) {
        if value.as_ref().is_empty() {
            return;
        }
        let mut word = format!("{}=", key.as_ref());
        for &c in value.as_ref() {
            if c.is_ascii_alphanumeric() || b"_./:@-".contains(&c) {
                word.push(char::from(c));
            } else {
                word += &format!("%{c:02X}");
            }
        }
        self.0.push(word);
    }

    fn show(&mut self, key: impl AsRef<str>, value: impl ToString) {
        self.add(key, value.to_string());
    }

    fn some<T: ToString>(&mut self, key: impl AsRef<str>, value: Option<T>) {
        if let Some(value) = value {
            self.show(key, value);
        }
    }

    fn text(&mut self, key: impl AsRef<str>, value: &Option<Text>) {
        if let Some(value) = value {
            self.add(key, &value.0);
        }
    }

    fn flag(&mut self, key: &str, set: bool) {
        self.some(key, set.then_some("true"));
    }

    fn detail(&mut self, at: &str, detail: &[Text]) {
        for (i, word) in detail.iter().enumerate() {
            self.add(format!("{at}detail.{i}"), &word.0);
        }
    }

    pub fn results(&mut self, results: &[refd::Result]) {
        for (i, r) in results.iter().enumerate() {
            let at = format!("results.{i}.");
            self.show(format!("{at}status"), r.status);
            self.add(format!("{at}ref"), &r.name.0);
            self.some(format!("{at}oid"), r.found.as_ref());
            self.add(format!("{at}text"), &r.text.0);
            self.detail(&at, &r.detail);
        }
    }

    pub fn report(&mut self, r: &Report) {
        use Outcome::*;
        self.show("outcome", r.outcome);
        self.add("txid", &r.txid);
        if !matches!(r.outcome, Pending | NeverSeen | Expired) {
            self.results(&r.results);
            self.show("updates", r.updates);
            self.some("token.log", r.token.as_ref().map(|t| &t.log));
            self.some("token.lsn", r.token.as_ref().map(|t| t.lsn));
        }
    }

    pub fn page(&mut self, p: &Page) {
        self.add("journal", &p.journal);
        self.some("gap", p.gap);
        self.flag("more", p.more);
        self.show("next.lsn", p.next.lsn);
        self.some("next.change", p.next.number);
        for (i, r) in p.records.iter().enumerate() {
            self.record(&format!("records.{i}."), r);
        }
    }

    fn record(&mut self, at: &str, r: &Record) {
        self.show(format!("{at}lsn"), r.lsn);
        self.show(format!("{at}time"), r.time_ms);
        self.show(format!("{at}uid"), r.uid);
        self.show(format!("{at}pid"), r.pid);
        self.add(format!("{at}txid"), &r.txid);
        self.add(format!("{at}path"), &r.path.0);
        self.some(format!("{at}voids"), r.voids);
        match r.origin {
            None => (),
            Some(Origin::Gate) => self.add(format!("{at}origin"), "gate"),
            Some(Origin::Seen) => self.add(format!("{at}origin"), "seen"),
        }
        self.text(format!("{at}committer"), &r.committer);
        self.text(format!("{at}message"), &r.message);
        for (name, value) in &r.identity {
            self.add(format!("{at}identity.{name}"), &value.0);
        }
        for (i, c) in r.changes.iter().enumerate() {
            let at = format!("{at}changes.{i}.");
            self.show(format!("{at}change"), c.number);
            self.show(format!("{at}status"), c.status);
            self.add(format!("{at}ref"), &c.name.0);
            self.some(format!("{at}old-oid"), c.old.as_ref());
            self.some(format!("{at}oid"), c.new.as_ref());
            self.add(format!("{at}target"), &c.target.0);
            self.add(format!("{at}text"), &c.text.0);
            self.detail(&at, &c.detail);
        }
    }

    fn hello(&mut self, h: &Hello) {
        self.show("version", h.version);
        self.add("software", &h.software.0);
        self.add("state", &h.state);
        self.show("horizon", h.horizon_ms);
        self.show("pid", h.pid);
        self.show("limit.updates", h.max_updates);
        self.show("limit.bytes", h.max_bytes);
        self.some("progress.done", h.progress.map(|p| p.0));
        self.some("progress.total", h.progress.map(|p| p.1));
    }

    fn answer(&mut self, a: &Answer) {
        self.show("id", a.id);
        if !matches!(a.body, Body::Results(_)) {
            self.some("txid", a.txid.as_ref());
        }
        let kind = match &a.body {
            Body::Results(report) => {
                self.report(report);
                "results"
            }
            Body::Prepared {
                results,
                rewrites_packed,
            } => {
                self.results(results);
                self.flag("rewrites-packed", *rewrites_packed);
                "prepared"
            }
            Body::Pending => "pending",
            Body::NeverSeen => "never-seen",
            Body::Expired => "expired",
            Body::Refused(r) => {
                self.show("status", r.status);
                self.add("text", &r.text.0);
                self.some("retry-after", r.retry_after.map(|t| t.as_millis()));
                "refused"
            }
            Body::Pong => "pong",
            Body::Records(page) => {
                self.page(page);
                "records"
            }
            Body::Pairs(pairs) => {
                for (i, (key, value)) in pairs.iter().enumerate() {
                    self.add(format!("pairs.{i}.0"), &key.0);
                    self.add(format!("pairs.{i}.1"), &value.0);
                }
                "pairs"
            }
        };
        self.add("kind", kind);
    }
}

/// Decodes one message: `hello` or `answer` and the fields, or `fatal`.
pub fn decode(data: &[u8]) -> (&'static str, Fields) {
    decode_or_error(data).unwrap_or(("fatal", Fields::default()))
}

fn decode_or_error(
    data: &[u8],
) -> std::result::Result<(&'static str, Fields), Error> {
    let mut incoming = Incoming::default();
    incoming.expect(0, true);
    incoming.feed(data);
    let packets = incoming.message()?.unwrap_or_default();
    let mut fields = Fields::default();
    if packets.first().map_or(false, |p| p.starts_with(b"refd ")) {
        fields.hello(&wire::decode_hello(&packets)?);
        return Ok(("hello", fields));
    }
    fields.answer(&wire::decode_answer(&packets)?);
    Ok(("answer", fields))
}
