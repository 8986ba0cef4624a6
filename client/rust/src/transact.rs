// The rules of resending: only an answer proves success or failure. A request
// that was sent and has no answer is asked for by its id. A transaction is sent
// again only after never-seen. A session ends with its connection. A commit is
// sent again only if the first was refused or not sent.

use crate::answer::{Answer, Body, Refusal};
use crate::client::{is_about_id, report_of, sleep, Call, Client, Tries};
use crate::conn::{Cause, Fail, Lost};
use crate::status::{Error, Outcome, Rejected, Status, Unknown};
use crate::types::{Report, Result as RefResult, Transaction, Update};
use crate::wire::{encode_simple, encode_transaction, DEADLINE_MAX_MS};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn misfit(text: &str) -> Error {
    Error::Protocol(text.to_string())
}

/// Checks that the answer fits the request, and gives every update a result.
pub(crate) fn fit(k: &Call, a: &mut Answer) -> Result<(), Error> {
    if !matches!(a.body, Body::Refused(_)) && !(k.kinds)(&a.body) {
        return Err(misfit("the answer does not fit the request"));
    }
    let txn = match k.txn {
        Some(txn) => txn,
        None => return Ok(()),
    };
    if a.txid.as_ref().map_or(false, |txid| txid != txn.txid()) {
        return Err(misfit("an answer about a different transaction"));
    }
    match &mut a.body {
        Body::Prepared { results, .. } => {
            let names = results.iter().map(|r| &r.name);
            if !names.eq(txn.updates.iter().map(|u| &u.name)) {
                return Err(misfit("the results do not fit the updates"));
            }
            Ok(())
        }
        Body::Results(report) => complete(report, &txn.updates),
        _ => Ok(()),
    }
}

fn outcome_of(results: &[RefResult]) -> Outcome {
    let count = |status| results.iter().filter(|r| r.status == status).count();
    let ok = count(Status::Ok);
    if count(Status::Unknown) > 0 {
        Outcome::Unknown
    } else if ok == results.len() {
        Outcome::Committed
    } else if ok > 0 {
        Outcome::Partial
    } else {
        Outcome::Rejected
    }
}

fn aborted(u: &Update, text: &str) -> RefResult {
    RefResult {
        name: u.name.clone(),
        status: Status::Aborted,
        found: None,
        text: text.into(),
        detail: Vec::new(),
    }
}

/// Adds a result for every update that never happened. The outcome must agree
/// with the results.
fn complete(report: &mut Report, updates: &[Update]) -> Result<(), Error> {
    let mut given = std::mem::take(&mut report.results).into_iter().peekable();
    for u in updates {
        let result = given.next_if(|r| r.name == u.name).unwrap_or_else(|| {
            aborted(u, "the daemon stopped before its turn")
        });
        report.results.push(result);
    }
    if given.next().is_some() || report.updates != updates.len() {
        return Err(misfit("the results do not fit the updates"));
    }
    let outcome = outcome_of(&report.results);
    if (outcome == Outcome::Committed) != (report.outcome == Outcome::Committed)
    {
        return Err(misfit("the outcome does not agree with the results"));
    }
    if report.outcome != Outcome::Unknown {
        report.outcome = outcome;
    }
    Ok(())
}

/// Returns the report of a success; every other outcome is an error.
fn verdict(report: Report) -> Result<Report, Error> {
    match report.outcome {
        Outcome::Committed => Ok(report),
        Outcome::Partial => Err(Error::Partial(report)),
        Outcome::Rejected => {
            // In an atomic transaction, one update failed first.
            let cause = report
                .results
                .iter()
                .find(|r| r.status != Status::Aborted)
                .or_else(|| report.results.first());
            Err(Error::Rejected(Rejected {
                status: cause.map_or(Status::Aborted, |r| r.status),
                text: cause.map_or(String::new(), RefResult::to_string),
                results: report.results,
                retry_after: None,
            }))
        }
        _ => Err(Error::Unknown(Unknown {
            txid: report.txid,
            text: "the daemon does not know".to_string(),
            results: report.results,
        })),
    }
}

pub(crate) fn refusal(r: &Refusal) -> Error {
    Error::Rejected(Rejected {
        status: r.status,
        text: r.text.to_string(),
        results: Vec::new(),
        retry_after: r.retry_after,
    })
}

/// Returns the error of a refused transaction.
fn refused(txid: &str, r: &Refusal) -> Error {
    if r.status == Status::Unknown {
        return Error::unknown(txid, r.text.to_string());
    }
    refusal(r)
}

/// Returns the error when the daemon cannot have the request.
fn unsent(lost: Lost) -> Error {
    let status = match lost.cause {
        Cause::Protocol(text) => return Error::Protocol(text),
        _ if lost.denied => Status::Denied,
        _ => Status::Busy,
    };
    Error::rejected(status, format!("nothing was sent: {}", lost.cause.text()))
}

fn session_gone() -> Error {
    let text = "the session ended with its connection";
    Error::rejected(Status::Aborted, text)
}

/// The time that the daemon has for a transaction.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn of(t: &Transaction, end: Instant) -> Result<Clock, Error> {
        let now = Instant::now();
        let left = match t.deadline {
            None => end.saturating_duration_since(now) * 3 / 4,
            Some(time)
                if (1..=u128::from(DEADLINE_MAX_MS))
                    .contains(&time.as_millis()) =>
            {
                time
            }
            Some(time) => {
                let text = format!("a deadline of {time:?}");
                return Err(Error::rejected(Status::BadRequest, text));
            }
        };
        Ok(Clock(now + left))
    }

    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now()).clamp(
            Duration::from_millis(1),
            Duration::from_millis(DEADLINE_MAX_MS),
        )
    }
}

impl Client {
    /// Asks the daemon for the outcome of a transaction.
    fn outcome(&mut self, t: &Transaction, end: Instant) -> Asked {
        let k = Call {
            encode: &|id| encode_simple("query", id, t.txid()),
            kinds: is_about_id,
            txn: Some(t),
            updates: t.updates.len(),
            serving: true,
            conn: None,
        };
        self.call(&k, end)
    }

    fn start(
        &mut self,
        verb: &str,
        kinds: fn(&Body) -> bool,
        t: &Transaction,
        clock: Clock,
        end: Instant,
    ) -> Asked {
        let k = Call {
            encode: &|id| encode_transaction(verb, id, t, Some(clock.left())),
            kinds,
            txn: Some(t),
            updates: t.updates.len(),
            serving: true,
            conn: None,
        };
        self.call(&k, end)
    }

    /// Does a transaction. The return value is `Ok` if and only if all refs are
    /// ok. If the timeout comes before the answer, the error is `Unknown`, or
    /// `Rejected` if nothing was sent.
    pub fn transact(&mut self, t: &Transaction) -> Result<Report, Error> {
        let end = self.end();
        let clock = Clock::of(t, end)?;
        let mut tries = Tries::default();
        let mut is_asking = t.maybe_sent.load(Ordering::SeqCst);
        loop {
            let asked = if is_asking {
                self.outcome(t, end)
            } else {
                let kinds = |body: &Body| matches!(body, Body::Results(_));
                self.start("transaction", kinds, t, clock, end)
            };
            let answer = match asked {
                Ok(answer) => answer,
                Err(Fail::Final(error)) => return Err(error),
                Err(Fail::Lost(mut lost)) => {
                    if lost.sent {
                        t.maybe_sent.store(true, Ordering::SeqCst);
                        is_asking = true;
                    }
                    if !tries.is_hopeless(&mut lost) {
                        tries.sleep(end);
                        continue;
                    }
                    if t.maybe_sent.load(Ordering::SeqCst) {
                        return Err(unknown(t, &lost.cause.text()));
                    }
                    return Err(unsent(lost));
                }
            };
            t.maybe_sent.store(true, Ordering::SeqCst);
            match answer.body {
                Body::Results(report) => return verdict(report),
                Body::NeverSeen => is_asking = false,
                Body::Pending => tries.sleep(end),
                Body::Refused(r) if is_asking => {
                    if r.status != Status::Busy {
                        return Err(unknown(t, &why(&r)));
                    }
                    tries.sleep(end);
                }
                Body::Refused(r) => match r.retry_after {
                    Some(time) if time < clock.left() => sleep(time, end),
                    _ => return Err(refused(t.txid(), &r)),
                },
                _ => return Err(unknown(t, "the id is too old")),
            }
        }
    }

    /// Locks all refs of a transaction. If the transaction was sent before, asks
    /// what became of it first.
    pub fn session(&mut self, t: Transaction) -> Result<Session, Error> {
        let end = self.end();
        let clock = Clock::of(&t, end)?;
        let mut tries = Tries::default();
        let kinds = |body: &Body| {
            matches!(body, Body::Results(_) | Body::Prepared { .. })
        };
        // An earlier request had the id.
        let mut is_known = t.maybe_sent.load(Ordering::SeqCst);
        let mut is_asking = is_known;
        loop {
            let asked = if is_asking {
                self.outcome(&t, end)
            } else {
                self.start("session", kinds, &t, clock, end)
            };
            let answer = match asked {
                Ok(answer) => answer,
                Err(Fail::Final(error)) => return Err(error),
                Err(Fail::Lost(mut lost)) => {
                    let is_hopeless = tries.is_hopeless(&mut lost);
                    if lost.sent && lost.over && !is_asking {
                        self.give_up(&t);
                    }
                    if is_known && is_hopeless {
                        return Err(unknown(&t, &lost.cause.text()));
                    }
                    if lost.sent && lost.over {
                        return Err(Error::rejected(
                            Status::Deadline,
                            "not prepared in time",
                        ));
                    }
                    if lost.sent && !is_known {
                        return Err(session_gone());
                    }
                    if is_hopeless {
                        return Err(unsent(lost));
                    }
                    is_asking = is_known;
                    tries.sleep(end);
                    continue;
                }
            };
            match answer.body {
                Body::Prepared {
                    results,
                    rewrites_packed,
                } => {
                    return Ok(Session {
                        results,
                        rewrites_packed,
                        conn: self.conn.as_ref().map(|conn| conn.number),
                        txn: t,
                        is_committing: AtomicBool::new(false),
                    })
                }
                Body::NeverSeen => {
                    is_known = false;
                    is_asking = false;
                }
                // Perhaps a session that is prepared.
                Body::Pending => is_asking = false,
                Body::Expired => return Err(unknown(&t, "the id is too old")),
                Body::Refused(r) if is_asking && r.status != Status::Busy => {
                    return Err(unknown(&t, &why(&r)));
                }
                // Without a lock, only the answer to a query is about the id.
                Body::Refused(_) if is_known => {
                    is_asking = true;
                    tries.sleep(end);
                }
                Body::Results(_) if is_known && !is_asking => {
                    is_asking = true;
                    tries.sleep(end);
                }
                Body::Results(report) => {
                    let report = verdict(report)?;
                    return Err(Error::Unknown(Unknown {
                        txid: report.txid,
                        text: "the id was committed before".to_string(),
                        results: report.results,
                    }));
                }
                Body::Refused(r) => match r.retry_after {
                    Some(time) if time < clock.left() => sleep(time, end),
                    _ => return Err(refused(t.txid(), &r)),
                },
                _ => return Err(session_gone()),
            }
        }
    }

    /// Cancels a session that nobody will commit.
    fn give_up(&mut self, t: &Transaction) {
        if let Some(conn) = &mut self.conn {
            let cancel = |id| encode_simple("cancel", id, t.txid());
            if conn.post(&cancel, t.updates.len()).is_err() {
                self.conn = None;
            }
        }
    }
}

type Asked = Result<Answer, Fail>;

fn unknown(t: &Transaction, text: &str) -> Error {
    Error::unknown(t.txid(), text)
}

fn why(r: &Refusal) -> String {
    if r.text.is_empty() {
        r.status.to_string()
    } else {
        r.text.to_string()
    }
}

/// A prepared session, which holds the locks of its refs. Call `commit` or
/// `abort` with the client that made the session. A dropped session keeps its
/// locks until the connection ends or the daemon's time for sessions is over.
#[derive(Debug)]
#[must_use]
pub struct Session {
    /// The refs that are locked, and the refs that failed.
    pub results: Vec<RefResult>,
    /// The commit also rewrites packed-refs.
    pub rewrites_packed: bool,
    txn: Transaction,
    conn: Option<u64>,
    is_committing: AtomicBool, // the daemon may have the commit
}

impl Session {
    /// The id.
    pub fn txid(&self) -> &str {
        self.txn.txid()
    }

    fn finish(&self, client: &mut Client, verb: &str, end: Instant) -> Asked {
        let k = Call {
            encode: &|id| encode_simple(verb, id, self.txid()),
            kinds: is_about_id,
            txn: Some(&self.txn),
            updates: self.txn.updates.len(),
            serving: false,
            // No connection has this number.
            conn: Some(self.conn.unwrap_or(u64::MAX)),
        };
        client.call(&k, end)
    }

    /// Publishes the refs. The return value is `Ok` if and only if all refs are
    /// ok. After the error `Unknown`, asks what became of the first commit.
    pub fn commit(&self, client: &mut Client) -> Result<Report, Error> {
        let end = client.end();
        let t = &self.txn;
        let mut tries = Tries::default();
        let mut is_asking = self.is_committing.swap(true, Ordering::SeqCst);
        loop {
            let asked = if is_asking {
                client.outcome(t, end)
            } else {
                self.finish(client, "commit", end)
            };
            let answer = match asked {
                Ok(answer) => answer,
                Err(Fail::Final(error)) => return Err(error),
                Err(Fail::Lost(mut lost)) => {
                    if !is_asking && !lost.sent {
                        self.is_committing.store(false, Ordering::SeqCst);
                        // If only the time is over and nothing was sent, the
                        // session is still prepared.
                        return Err(if lost.over && !lost.broken {
                            unsent(lost)
                        } else {
                            session_gone()
                        });
                    }
                    is_asking = true;
                    if tries.is_hopeless(&mut lost) {
                        return Err(unknown(t, &lost.cause.text()));
                    }
                    tries.sleep(end);
                    continue;
                }
            };
            match answer.body {
                Body::Results(report) => return verdict(report),
                Body::NeverSeen => return Err(session_gone()),
                Body::Expired => return Err(unknown(t, "the id is too old")),
                Body::Refused(r) if is_asking && r.status != Status::Busy => {
                    return Err(unknown(t, &why(&r)));
                }
                Body::Refused(r) if !is_asking => {
                    // The refused commit did nothing: another may be sent.
                    let is_open = r.status == Status::Unknown;
                    self.is_committing.store(is_open, Ordering::SeqCst);
                    return Err(refused(t.txid(), &r));
                }
                _ => {
                    is_asking = true;
                    tries.sleep(end);
                }
            }
        }
    }

    /// Releases the locks. The outcome of the report is not `Rejected` only if
    /// the session was committed before. If an earlier commit and this abort
    /// have no answer, the error is `Unknown`.
    pub fn abort(&self, client: &mut Client) -> Result<Report, Error> {
        let end = client.end();
        let updates = &self.txn.updates;
        let gone = || Report {
            txid: self.txid().to_string(),
            outcome: Outcome::Rejected,
            results: updates.iter().map(|u| aborted(u, "")).collect(),
            updates: updates.len(),
            token: None,
        };
        let is_open = self.is_committing.load(Ordering::SeqCst);
        match self.finish(client, "abort", end) {
            Err(Fail::Final(error)) => Err(error),
            Err(Fail::Lost(lost)) if is_open => {
                Err(unknown(&self.txn, &lost.cause.text()))
            }
            Err(Fail::Lost(lost)) if lost.over => {
                Err(Error::Unreachable(lost.cause.text()))
            }
            Err(Fail::Lost(_)) => Ok(gone()),
            Ok(answer) => match &answer.body {
                Body::Refused(r) if is_open => Err(unknown(&self.txn, &why(r))),
                Body::Refused(r) => Err(refused(self.txid(), r)),
                Body::NeverSeen => Ok(gone()),
                Body::Pending | Body::Expired => {
                    Err(unknown(&self.txn, "its commit may have happened"))
                }
                _ => report_of(answer, self.txid()),
            },
        }
    }
}
