//! The client of refd, the ref store daemon for Git servers.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (new, old) = ("", "");
//! let mut client = refd::Client::connect()?;
//! let repo = refd::Repository::open("/srv/git/a.git")?;
//! let mut txn = refd::Transaction::new(&repo)?;
//! txn.update("refs/heads/main", new, Some(old));
//! client.transact(&txn)?;
//! # Ok(()) }
//! ```
//!
//! A call returns `Ok` only after success. Every other end of a transaction is
//! a variant of [`Error`]: `Rejected` (nothing was done), `Partial`, or
//! `Unknown` (done or not: ask, or send the same transaction again).
//! proto/PROTOCOL.md defines the protocol.
//!
//! A [`Client`] has one request at a time. Threads make one client each.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod client;
mod conn;
mod detail;
mod status;
mod transact;
mod types;
pub mod wire;

pub use client::{default_socket, Client, DEFAULT_TIMEOUT};
pub use status::{Error, Outcome, Rejected, Status, Unknown};
pub use transact::Session;
pub use types::{
    new_txid, Change, Command, Hello, Old, Origin, Page, Pair, Position,
    Record, Report, Repository, Result, Selection, Text, Token, Transaction,
    Update,
};
