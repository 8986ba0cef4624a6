use crate::detail::sentence;
use crate::types::{Report, Result as RefResult, Text};
use std::fmt;
use std::time::Duration;

macro_rules! words {
    (
        $(#[$about:meta])*
        $name:ident
        $($(#[$what:meta])* $item:ident $word:literal)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$what])* $item),* }

        impl $name {
            /// The word of the protocol.
            pub fn word(self) -> &'static str {
                match self { $($name::$item => $word),* }
            }

            pub(crate) fn of_word(word: &[u8]) -> Option<$name> {
                [$($name::$item),*]
                    .into_iter()
                    .find(|one| one.word().as_bytes() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// The fate of one ref, or the reason of a refusal.
    Status
    /// Updated, or verified.
    Ok "ok"
    /// The ref has a different value.
    Stale "stale"
    /// The ref exists.
    Exists "exists"
    /// The ref does not exist.
    Missing "missing"
    /// Another writer holds the lock.
    Locked "locked"
    /// The names of two refs conflict.
    Conflict "conflict"
    /// The name of the ref is not valid.
    BadName "badname"
    /// The object does not exist.
    NoObject "noobject"
    /// The object of a branch is not a commit.
    NotCommit "notcommit"
    /// Not permitted.
    Denied "denied"
    /// A hook declined.
    HookDeclined "hook-declined"
    /// No space is left on the device.
    NoSpace "nospace"
    /// Input or output failed.
    Io "io"
    /// The daemon is too busy, or was not reached.
    Busy "busy"
    /// The deadline passed.
    Deadline "deadline"
    /// A sibling update failed, or the session is over.
    Aborted "aborted"
    /// refd does not support the request.
    Unsupported "unsupported"
    /// The outcome is not known.
    Unknown "unknown"
    /// The ref is broken.
    Broken "broken"
    /// The transaction has several updates of the ref.
    Duplicate "duplicate"
    /// Not a repository that refd may serve.
    NoRepo "norepo"
    /// The request is malformed.
    BadRequest "badrequest"
    /// A limit was passed.
    Limit "limit"
    /// The ref is not symbolic.
    NotSymref "notsymref"
}

impl Status {
    /// Says that the same request may succeed later without other action.
    pub fn may_retry(self) -> bool {
        use Status::*;
        matches!(self, Locked | NoSpace | Io | Busy | Deadline)
    }
}

words! {
    /// The state of a whole transaction.
    Outcome
    /// Every ref is updated and durable.
    Committed "committed"
    /// Some refs were updated.
    Partial "partial"
    /// Nothing was done.
    Rejected "rejected"
    /// The daemon does not know.
    Unknown "unknown"
    /// Not decided yet.
    Pending "pending"
    /// The daemon has never seen the id.
    NeverSeen "never-seen"
    /// The id is too old.
    Expired "expired"
}

/// Says that nothing of the request was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The reason; neither `Ok` nor `Unknown`.
    pub status: Status,
    /// The reason for people.
    pub text: String,
    /// Empty if the request was refused as a whole.
    pub results: Vec<RefResult>,
    /// The time to wait before another attempt, if the daemon named it.
    pub retry_after: Option<Duration>,
}

/// Neither success nor failure: the transaction may have been done, may still
/// be done, or may never be done. Calling `transact` again with the same
/// transaction is safe, and so is `query`: the daemon does a transaction at
/// most once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The id to ask for.
    pub txid: String,
    /// The reason for people.
    pub text: String,
    /// The results as far as known.
    pub results: Vec<RefResult>,
}

/// Every end of a call except success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nothing of the request was done.
    Rejected(Rejected),
    /// Some refs were updated and others were not. Only a transaction that is
    /// not atomic can end like this.
    Partial(Report),
    /// The request may have been done or not.
    Unknown(Unknown),
    /// The peer's message is not a message of this version of the protocol. A
    /// transaction that may have been sent gets `Unknown`.
    Protocol(String),
    /// The daemon gave no answer in time. Only requests that change no ref
    /// get this error.
    Unreachable(String),
}

impl Error {
    pub(crate) fn rejected(status: Status, text: impl Into<String>) -> Error {
        Error::Rejected(Rejected {
            status,
            text: text.into(),
            results: Vec::new(),
            retry_after: None,
        })
    }

    pub(crate) fn unknown(txid: &str, text: impl Into<String>) -> Error {
        Error::Unknown(Unknown {
            txid: txid.to_string(),
            text: text.into(),
            results: Vec::new(),
        })
    }

    pub(crate) fn malformed(what: &str) -> Error {
        Error::Protocol(format!("malformed {what}"))
    }

    /// The status, if nothing was done.
    pub fn status(&self) -> Option<Status> {
        match self {
            Error::Rejected(rejected) => Some(rejected.status),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Rejected(r) if r.text.is_empty() => {
                write!(f, "refd: {}", r.status)
            }
            Error::Rejected(r) => write!(f, "refd: {}: {}", r.status, r.text),
            Error::Partial(report) => {
                let all = &report.results;
                let failed =
                    all.iter().filter(|r| r.status != Status::Ok).count();
                write!(f, "refd: {failed} of {} refs failed", all.len())
            }
            Error::Unknown(u) => write!(
                f,
                "refd: the outcome of transaction {} is unknown: {}",
                u.txid, u.text
            ),
            Error::Protocol(text) => write!(f, "refd: {text}"),
            Error::Unreachable(text) => write!(f, "refd: no answer: {text}"),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for RefResult {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        if !self.text.is_empty() {
            return write!(f, "{}", self.text);
        }
        let words: Vec<String> =
            self.detail.iter().map(Text::to_string).collect();
        match sentence(&words) {
            Some(said) => f.write_str(&said),
            None => write!(f, "{}", self.status),
        }
    }
}
