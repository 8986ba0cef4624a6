use crate::status::{Outcome, Status};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// Any bytes, usually UTF-8: the name of a ref, a target, a message.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(pub Vec<u8>);

impl Deref for Text {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.as_bytes().to_vec())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text.into_bytes())
    }
}

impl From<&[u8]> for Text {
    fn from(text: &[u8]) -> Text {
        Text(text.to_vec())
    }
}

/// Makes a transaction id: the time, and 80 random bits.
pub fn new_txid() -> io::Result<String> {
    let mut random = [0; 10];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let ms = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as u64);
    let mut txid = format!("{:012x}", ms & 0xffff_ffff_ffff);
    for byte in random {
        txid += &format!("{byte:02x}");
    }
    Ok(txid)
}

/// A repository as the daemon needs it. Use [`Repository::open`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    /// The absolute path of the git-dir.
    pub git_dir: Text,
    /// The device of the common directory.
    pub common_dev: u64,
    /// The inode of the common directory.
    pub common_ino: u64,
    /// `sha1` or `sha256`. None: the length of the ids of a transaction tells.
    pub object_format: Option<String>,
}

impl Repository {
    /// Looks at a git-dir: a bare repository, the .git of a work tree, or a
    /// directory in .git/worktrees.
    pub fn open(git_dir: impl AsRef<Path>) -> io::Result<Repository> {
        let dir = fs::canonicalize(git_dir)?;
        let common = match fs::read(dir.join("commondir")) {
            Ok(mut name) => {
                while name.last() == Some(&b'\n') {
                    name.pop();
                }
                dir.join(PathBuf::from(std::ffi::OsString::from_vec(name)))
            }
            // NotFound, or ENOTDIR, which has no stable name in Rust 1.63.
            Err(e)
                if e.kind() == io::ErrorKind::NotFound
                    || e.raw_os_error() == Some(20) =>
            {
                dir.clone()
            }
            Err(e) => return Err(e),
        };
        let at = fs::metadata(common)?;
        Ok(Repository {
            git_dir: dir.as_os_str().as_bytes().into(),
            common_dev: at.dev(),
            common_ino: at.ino(),
            object_format: None,
        })
    }
}

/// Reads the umask of this process without changing it.
pub(crate) fn process_umask() -> io::Result<u32> {
    fs::read_to_string("/proc/self/status")?
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|value| u32::from_str_radix(value.trim(), 8).ok())
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "/proc/self/status has no umask",
            )
        })
}

/// The old value that a symref-update requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Old {
    /// Any value.
    Any,
    /// The ref points to this target.
    Target(Text),
    /// The ref is an ordinary ref with this id.
    Oid(String),
}

/// A command of `git update-ref --stdin`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are those of git-update-ref(1)
pub enum Command {
    /// Sets a ref. The null id as `old` says that the ref must not exist.
    Update { oid: String, old: Option<String> },
    /// Makes a ref, which must not exist.
    Create { oid: String },
    /// Deletes a ref.
    Delete { old: Option<String> },
    /// Changes nothing. Without `old`, the ref must not exist.
    Verify { old: Option<String> },
    /// Sets a symbolic ref.
    SymrefUpdate { target: Text, old: Old },
    /// Makes a symbolic ref, which must not exist.
    SymrefCreate { target: Text },
    /// Deletes a symbolic ref.
    SymrefDelete { old: Option<Text> },
    /// Changes nothing. Without `old`, the ref must not exist.
    SymrefVerify { old: Option<Text> },
}

/// A command for one ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The ref.
    pub name: Text,
    /// The command.
    pub command: Command,
    /// Do not follow a symbolic ref.
    pub no_deref: bool,
}

/// A list of updates of refs in one repository, and the options of the request;
/// PROTOCOL.md, "Headers", explains them. The same transaction, passed to
/// `transact` again, is the same transaction: it is done at most once. Do not
/// change a transaction after the first call.
#[derive(Debug)]
pub struct Transaction {
    txid: String,
    pub(crate) maybe_sent: AtomicBool, // the daemon may have this transaction
    /// The repository of the refs.
    pub repository: Repository,
    /// The updates, in their order.
    pub updates: Vec<Update>,
    /// All or nothing.
    pub atomic: bool,
    /// For the reflog.
    pub message: Option<Text>,
    /// `Name <mail> seconds zone`
    pub committer: Option<Text>,
    /// The least durability.
    pub durability: Option<String>,
    /// The level that is necessary before the answer.
    pub level: Option<String>,
    /// The time in which the daemon must begin the commit. None: three
    /// quarters of the time of the call.
    pub deadline: Option<Duration>,
    /// As `git update-ref --create-reflog`.
    pub create_reflog: bool,
    /// Apply receive-pack's rules for names.
    pub push: bool,
    /// None: the umask of this process.
    pub umask: Option<u32>,
    /// core.logAllRefUpdates
    pub log_all_ref_updates: Option<Text>,
    /// core.sharedRepository
    pub shared_repository: Option<Text>,
    /// core.filesRefLockTimeout
    pub ref_lock_timeout: Option<Duration>,
    /// core.packedRefsTimeout
    pub packed_refs_timeout: Option<Duration>,
    /// git's session id.
    pub trace2_sid: Option<Text>,
    /// Environment variables that identify the user.
    pub identity: BTreeMap<String, Text>,
}

impl Transaction {
    /// Makes an empty transaction with a new id.
    pub fn new(repository: &Repository) -> io::Result<Transaction> {
        let mut t = Transaction::resume(repository, &new_txid()?);
        t.maybe_sent = AtomicBool::new(false);
        Ok(t)
    }

    /// Makes an empty transaction with the id of an earlier transaction,
    /// perhaps of an earlier process. The updates must be the same.
    pub fn resume(repository: &Repository, txid: &str) -> Transaction {
        Transaction {
            txid: txid.to_string(),
            maybe_sent: AtomicBool::new(true),
            repository: repository.clone(),
            updates: Vec::new(),
            atomic: false,
            message: None,
            committer: None,
            durability: None,
            level: None,
            deadline: None,
            create_reflog: false,
            push: false,
            umask: None,
            log_all_ref_updates: None,
            shared_repository: None,
            ref_lock_timeout: None,
            packed_refs_timeout: None,
            trace2_sid: None,
            identity: BTreeMap::new(),
        }
    }

    /// The id.
    pub fn txid(&self) -> &str {
        &self.txid
    }

    /// Adds a command for a ref.
    pub fn add(&mut self, name: impl Into<Text>, command: Command) {
        self.updates.push(Update {
            name: name.into(),
            command,
            no_deref: false,
        });
    }

    /// Sets a ref. With `old`, the ref must have this value; the null id says
    /// that the ref must not exist.
    pub fn update(
        &mut self,
        name: impl Into<Text>,
        oid: &str,
        old: Option<&str>,
    ) {
        let (oid, old) = (oid.to_string(), old.map(str::to_string));
        self.add(name, Command::Update { oid, old });
    }

    /// Makes a ref, which must not exist.
    pub fn create(&mut self, name: impl Into<Text>, oid: &str) {
        let oid = oid.to_string();
        self.add(name, Command::Create { oid });
    }

    /// Deletes a ref. With `old`, the ref must have this value.
    pub fn delete(&mut self, name: impl Into<Text>, old: Option<&str>) {
        let old = old.map(str::to_string);
        self.add(name, Command::Delete { old });
    }

    /// Changes nothing. Without `old`, the ref must not exist.
    pub fn verify(&mut self, name: impl Into<Text>, old: Option<&str>) {
        let old = old.map(str::to_string);
        self.add(name, Command::Verify { old });
    }
}

/// The fate of one ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Result {
    /// The ref.
    pub name: Text,
    /// The fate.
    pub status: Status,
    /// The value that the daemon found.
    pub found: Option<String>,
    /// For people. Empty: the usual text of the status.
    pub text: Text,
    /// PROTOCOL.md, "Details".
    pub detail: Vec<Text>,
}

/// What the daemon says about a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The id.
    pub txid: String,
    /// The state of the whole transaction.
    pub outcome: Outcome,
    /// The fate of the refs.
    pub results: Vec<Result>,
    /// The number of updates.
    pub updates: usize,
    /// The place of the transaction in the log.
    pub token: Option<Token>,
}

/// A place in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The id of the log.
    pub log: String,
    /// The number of the record.
    pub lsn: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.log, self.lsn)
    }
}

/// The first message of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Of the protocol.
    pub version: u32,
    /// Name and version of the daemon.
    pub software: Text,
    /// `recovering`, `serving` or `draining`.
    pub state: String,
    /// Ids that were born before this time have expired.
    pub horizon_ms: u64,
    /// The process of the daemon.
    pub pid: u64,
    /// The most updates of a transaction.
    pub max_updates: u32,
    /// The most bytes of a transaction.
    pub max_bytes: u32,
    /// What recovery has examined, and the total.
    pub progress: Option<(u64, u64)>,
    /// Words of PROTOCOL.md, "Hello".
    pub capabilities: Vec<Text>,
}

/// A place in history: a record, or a change of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The record.
    pub lsn: u64,
    /// The change. None: the whole record.
    pub number: Option<u32>,
}

/// Selects the changes that `log` and `watch` return: PROTOCOL.md, "History".
/// The default selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are the headers of PROTOCOL.md
pub struct Selection {
    pub repository: Option<Repository>,
    pub refs: Vec<Text>,
    pub txid: Option<String>,
    pub uid: Option<u32>,
    pub user: Option<Text>,
    pub since_ms: Option<u64>,
    pub until_ms: Option<u64>,
    pub journal: Option<String>,
    pub after: Option<Position>,
    pub before: Option<Position>,
    pub limit: Option<u32>,
    pub reverse: bool,
    pub all: bool,
    pub origin: bool,
    /// The longest wait of `watch`.
    pub wait: Option<Duration>,
}

impl Selection {
    /// Returns the selection that continues behind a page.
    pub fn behind(&self, page: &Page) -> Selection {
        let mut next = self.clone();
        next.journal = Some(page.journal.clone());
        if self.reverse {
            next.before = Some(page.next);
        } else {
            next.after = Some(page.next);
        }
        next
    }
}

/// Who wrote the refs of a record, if not the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Git, which told the daemon.
    Gate,
    /// Another writer. The daemon found the change later, and values in
    /// between may be missing.
    Seen,
}

/// Decisions for one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are those of PROTOCOL.md, "History"
pub struct Record {
    pub lsn: u64,
    pub time_ms: u64,
    pub uid: u32,
    pub pid: u64,
    pub txid: String,
    pub path: Text,
    pub voids: Option<u64>,
    /// `None`: the daemon wrote the refs, or the selection has no `origin`.
    pub origin: Option<Origin>,
    pub committer: Option<Text>,
    pub message: Option<Text>,
    pub identity: BTreeMap<String, Text>,
    pub changes: Vec<Change>,
}

/// The fate of one ref in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The place in the record.
    pub number: u32,
    /// The fate.
    pub status: Status,
    /// The ref.
    pub name: Text,
    /// None: not known.
    pub old: Option<String>,
    /// None: not known.
    pub new: Option<String>,
    /// Not empty if the change made the ref symbolic.
    pub target: Text,
    /// As in a result, or empty.
    pub text: Text,
    /// PROTOCOL.md, "Details".
    pub detail: Vec<Text>,
}

/// A part of history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The journal of the positions.
    pub journal: String,
    /// The records.
    pub records: Vec<Record>,
    /// The place to continue.
    pub next: Position,
    /// There is more to read now.
    pub more: bool,
    /// Changes up to this LSN are not known any more.
    pub gap: Option<u64>,
}

/// One line of `pairs`: the key and the value.
pub type Pair = (Text, Text);
