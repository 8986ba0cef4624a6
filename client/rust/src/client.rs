use crate::answer::{Answer, Body};
use crate::conn::{time_left, Cause, Conn, Encode, Fail, Lost};
use crate::status::{Error, Outcome, Status};
use crate::transact::{fit, refusal};
use crate::types::{
    Hello, Page, Pair, Report, Repository, Selection, Transaction,
};
use crate::wire::{
    encode_for_repository, encode_history, encode_simple, UPDATES_MAX,
};
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time of a call of a new client.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(40);

const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);
const MISFITS_MAX: u32 = 3;
const NAP_MIN: Duration = Duration::from_millis(10);
const NAP_MAX: Duration = Duration::from_millis(250);

/// `su` leaves the directory of the calling user in the environment. The
/// owner of `/proc/self` is this user.
fn is_own(path: &Path) -> bool {
    match (fs::symlink_metadata(path), fs::metadata("/proc/self")) {
        (Ok(it), Ok(this)) => it.uid() == 0 || it.uid() == this.uid(),
        _ => false,
    }
}

/// Returns REFD_SOCKET, or the socket of a daemon of this user, or the socket
/// of the daemon of the system.
pub fn default_socket() -> PathBuf {
    if let Some(path) = env::var_os("REFD_SOCKET").filter(|p| !p.is_empty()) {
        return path.into();
    }
    let run = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = run
        .filter(|run| is_own(run))
        .map(|run| run.join("refd.sock"));
    match own {
        Some(own) if own.is_absolute() && is_own(&own) => own,
        _ => "/run/refd/refd.sock".into(),
    }
}

/// A connection to the daemon, made again when it is lost.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    timeout: Duration,
    hello: Hello,
    pub(crate) conn: Option<Conn>,
}

/// A request, and the kinds of answers that fit the request.
pub(crate) struct Call<'a> {
    pub encode: Encode<'a>,
    pub kinds: fn(&Body) -> bool,
    pub txn: Option<&'a Transaction>, // results must fit its updates
    /// The most results in the answer.
    pub updates: usize,
    pub serving: bool,
    pub conn: Option<u64>, // no other connection will do
}

pub(crate) fn is_about_id(body: &Body) -> bool {
    use Body::*;
    matches!(body, Results(_) | Pending | NeverSeen | Expired)
}

impl Client {
    /// Connects to the daemon of [`default_socket`].
    pub fn connect() -> Result<Client, Error> {
        Client::connect_to(default_socket(), DEFAULT_TIMEOUT)
    }

    /// Connects to a daemon. The timeout is of this call and of later calls.
    pub fn connect_to(
        path: impl Into<PathBuf>,
        timeout: Duration,
    ) -> Result<Client, Error> {
        let path = path.into();
        let end = Instant::now() + timeout.min(TIMEOUT_MAX);
        match Conn::connect(&path, end) {
            Ok(conn) => Ok(Client {
                path,
                timeout,
                hello: conn.hello.clone(),
                conn: Some(conn),
            }),
            Err(Cause::Protocol(text)) => Err(Error::Protocol(text)),
            Err(cause) => Err(Error::Unreachable(cause.text())),
        }
    }

    /// Sets the longest time of a call, at most a day.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Ends the connection. The daemon aborts the open sessions. A later call
    /// connects again.
    pub fn close(&mut self) {
        self.conn = None;
    }

    /// Returns the daemon's last first message.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    pub(crate) fn end(&self) -> Instant {
        Instant::now() + self.timeout.min(TIMEOUT_MAX)
    }

    /// Makes sure of a connection. If `serving` is set, the daemon must serve.
    fn connected(&mut self, serving: bool, end: Instant) -> Result<(), Lost> {
        if time_left(end).is_none() {
            let mut lost = Lost::unsent(Cause::Time);
            lost.broken = false;
            return Err(lost);
        }
        let is_fit = match &mut self.conn {
            Some(conn) => match conn.check(end) {
                Err(lost) if lost.denied => return Err(lost),
                Err(_) => false,
                Ok(()) => !serving || conn.hello.state == "serving",
            },
            None => false,
        };
        if !is_fit {
            self.conn = None;
            let mut conn =
                Conn::connect(&self.path, end).map_err(Lost::unsent)?;
            self.hello = conn.hello.clone();
            if serving && self.hello.state != "serving" {
                let text = format!("the daemon is {}", self.hello.state);
                return Err(Lost::unsent(Cause::Other(text)));
            }
            conn.check(end)?;
            self.conn = Some(conn);
        }
        Ok(())
    }

    pub(crate) fn call(
        &mut self,
        k: &Call,
        end: Instant,
    ) -> Result<Answer, Fail> {
        let result = self.try_call(k, end);
        if let Err(Fail::Lost(lost)) = &result {
            if lost.broken {
                self.conn = None;
            }
        }
        result
    }

    fn try_call(&mut self, k: &Call, end: Instant) -> Result<Answer, Fail> {
        let gone = || {
            let text = "the connection has ended".to_string();
            Fail::Lost(Lost {
                broken: false,
                ..Lost::unsent(Cause::Other(text))
            })
        };
        match (k.conn, &mut self.conn) {
            (None, _) => {
                self.connected(k.serving, end).map_err(Fail::Lost)?;
            }
            (Some(number), Some(conn)) if conn.number == number => {
                conn.check(end).map_err(Fail::Lost)?;
            }
            _ => return Err(gone()),
        }
        let conn = self.conn.as_mut().ok_or_else(gone)?;
        let mut answer = conn.ask(k.encode, k.updates, end)?;
        match fit(k, &mut answer) {
            Ok(()) => Ok(answer),
            Err(error) => Err(Fail::Lost(Lost {
                sent: true,
                ..Lost::unsent(error.into())
            })),
        }
    }

    // ---- questions ----

    /// Asks. If `is_once` is set, asks again only if nothing was sent.
    fn question(
        &mut self,
        is_once: bool,
        kinds: fn(&Body) -> bool,
        updates: usize,
        encode: Encode,
    ) -> Result<Answer, Error> {
        let end = self.end();
        let mut tries = Tries::default();
        let k = Call {
            encode,
            kinds,
            txn: None,
            updates,
            serving: false,
            conn: None,
        };
        loop {
            let mut lost = match self.call(&k, end) {
                Ok(answer) => return answered(answer),
                Err(Fail::Final(error)) => return Err(error),
                Err(Fail::Lost(lost)) => lost,
            };
            if let Cause::Protocol(text) = lost.cause {
                return Err(Error::Protocol(text));
            }
            if is_once && lost.sent {
                return Err(Error::Unreachable(format!(
                    "no answer, and not sent again: {}",
                    lost.cause.text()
                )));
            }
            if tries.is_hopeless(&mut lost) {
                let text = lost.cause.text();
                return Err(if lost.denied {
                    Error::rejected(Status::Denied, text)
                } else {
                    Error::Unreachable(text)
                });
            }
            tries.sleep(end);
        }
    }

    /// Checks that the daemon answers.
    pub fn ping(&mut self) -> Result<(), Error> {
        self.question(false, |body| matches!(body, Body::Pong), 0, &|id| {
            encode_simple("ping", id, "")
        })?;
        Ok(())
    }

    /// Returns the pairs of a verb without headers, as status or stats. The
    /// verbs of administrators, as drain, need their socket. A drain is not sent
    /// again: without an answer, it may have ended or may go on.
    pub fn pairs(&mut self, verb: &str) -> Result<Vec<Pair>, Error> {
        // If a daemon ends while it is drained, the next one must not be
        // drained.
        let is_once = verb == "drain";
        self.ask_pairs(is_once, &|id| encode_simple(verb, id, ""))
    }

    /// Moves the loose refs of a repository to packed-refs. The pairs have the
    /// numbers of refs that were packed, and that were left.
    pub fn pack(&mut self, repo: &Repository) -> Result<Vec<Pair>, Error> {
        self.ask_pairs(false, &|id| encode_for_repository("pack", id, repo))
    }

    /// Looks in a repository for changes by writers who did not tell the
    /// daemon, and records them. The pairs have the numbers of changes that
    /// were recorded, and that are left for a later look.
    pub fn look(&mut self, repo: &Repository) -> Result<Vec<Pair>, Error> {
        self.ask_pairs(false, &|id| encode_for_repository("look", id, repo))
    }

    fn ask_pairs(
        &mut self,
        is_once: bool,
        encode: Encode,
    ) -> Result<Vec<Pair>, Error> {
        let kinds = |body: &Body| matches!(body, Body::Pairs(_));
        let answer = self.question(is_once, kinds, 0, encode)?;
        match answer.body {
            Body::Pairs(pairs) => Ok(pairs),
            _ => Err(Error::malformed("pairs")),
        }
    }

    /// Returns the state of the daemon.
    pub fn status(&mut self) -> Result<Vec<Pair>, Error> {
        self.pairs("status")
    }

    /// Returns the counters of the daemon.
    pub fn stats(&mut self) -> Result<Vec<Pair>, Error> {
        self.pairs("stats")
    }

    fn about(&mut self, verb: &str, txid: &str) -> Result<Report, Error> {
        let answer = self.question(false, is_about_id, UPDATES_MAX, &|id| {
            encode_simple(verb, id, txid)
        })?;
        if answer.txid.as_deref() != Some(txid) {
            return Err(Error::Protocol(
                "an answer about a different transaction".to_string(),
            ));
        }
        report_of(answer, txid)
    }

    /// Returns the report about a transaction or session, of any outcome.
    pub fn query(&mut self, txid: &str) -> Result<Report, Error> {
        self.about("query", txid)
    }

    /// Gives up a waiting transaction. See the outcome of the report.
    pub fn cancel(&mut self, txid: &str) -> Result<Report, Error> {
        self.about("cancel", txid)
    }

    fn history(&mut self, verb: &str, s: &Selection) -> Result<Page, Error> {
        let kinds = |body: &Body| matches!(body, Body::Records(_));
        let answer =
            self.question(false, kinds, 0, &|id| encode_history(verb, id, s))?;
        match answer.body {
            Body::Records(page) => Ok(page),
            _ => Err(Error::malformed("records")),
        }
    }

    /// Returns one page of past changes; [`Selection::behind`] continues.
    pub fn log(&mut self, s: &Selection) -> Result<Page, Error> {
        self.history("log", s)
    }

    /// Waits for changes, and returns a page, which may be empty. Without
    /// `after` returns at once: [`Selection::behind`] selects all changes
    /// behind this moment.
    pub fn watch(&mut self, s: &Selection) -> Result<Page, Error> {
        let mut asked = s.clone();
        // Changes from now on: if the connection is lost, the same request
        // would mean a later moment.
        if s.after.is_none() {
            asked.wait = Some(Duration::from_millis(1));
        }
        self.history("watch", &asked)
    }
}

fn answered(answer: Answer) -> Result<Answer, Error> {
    match answer.body {
        Body::Refused(r) if r.status == Status::Unknown => {
            Err(Error::Protocol("a question is unknown".to_string()))
        }
        Body::Refused(r) => Err(refusal(&r)),
        _ => Ok(answer),
    }
}

/// Returns the report of an answer about an id.
pub(crate) fn report_of(answer: Answer, txid: &str) -> Result<Report, Error> {
    let outcome = match answer.body {
        Body::Results(report) => return Ok(report),
        Body::Pending => Outcome::Pending,
        Body::NeverSeen => Outcome::NeverSeen,
        Body::Expired => Outcome::Expired,
        _ => return Err(Error::malformed("report")),
    };
    Ok(Report {
        txid: txid.to_string(),
        outcome,
        results: Vec::new(),
        updates: 0,
        token: None,
    })
}

/// Pauses that become longer, and the failures so far.
#[derive(Default)]
pub(crate) struct Tries {
    nap: Duration,
    misfits: u32,
    why: Option<String>,
}

impl Tries {
    /// Notes a failure. If only the time is over, the failure before has the
    /// better reason.
    pub(crate) fn is_hopeless(&mut self, lost: &mut Lost) -> bool {
        if let Cause::Protocol(_) = lost.cause {
            self.misfits += 1;
            return !lost.sent || self.misfits >= MISFITS_MAX;
        }
        if lost.over {
            if let Some(why) = self.why.take() {
                lost.cause = Cause::Other(why);
            }
        }
        self.why = Some(lost.cause.text());
        lost.over || lost.denied
    }

    /// Pauses, at most until the end.
    pub(crate) fn sleep(&mut self, end: Instant) {
        self.nap = self.nap.max(NAP_MIN);
        sleep(self.nap, end);
        self.nap = (self.nap * 2).min(NAP_MAX);
    }
}

pub(crate) fn sleep(time: Duration, end: Instant) {
    if let Some(left) = time_left(end) {
        thread::sleep(time.min(left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Repository, Transaction};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;

    /// A message of these packets.
    fn message(packets: &[&str]) -> Vec<u8> {
        let packet = |p: &&str| format!("{:04x}{p}", p.len() + 4);
        let mut text: String = packets.iter().map(packet).collect();
        text += "0000";
        text.into_bytes()
    }

    /// Runs a server for one connection, and returns a client of it.
    fn served(
        name: &str,
        timeout: Duration,
        serve: impl FnOnce(std::os::unix::net::UnixStream) + Send + 'static,
    ) -> (Client, thread::JoinHandle<()>) {
        let dir =
            env::temp_dir().join(format!("refd-{name}-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let hello = message(&[
                "refd version=2",
                "software x",
                "state serving",
                "horizon 0",
                "pid 1",
                "limit updates=100000 bytes=67108864",
            ]);
            peer.write_all(&hello).unwrap();
            serve(peer);
        });
        let client = Client::connect_to(&path, timeout).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
        (client, server)
    }

    fn transaction(updates: usize) -> Transaction {
        let repo = Repository {
            git_dir: "/x".into(),
            ..Repository::default()
        };
        let mut txn = Transaction::new(&repo).unwrap();
        for i in 0..updates {
            txn.create(format!("refs/heads/{i}"), &"1".repeat(40));
        }
        txn
    }

    /// The daemon reads nothing while old answers wait. The client must read
    /// them while it sends.
    #[test]
    fn old_answers_are_read_while_sending() {
        let (quiet, is_quiet) = mpsc::channel();
        let (mut client, server) =
            served("old", Duration::from_secs(60), move |mut peer| {
                let mut chunk = [0; 1 << 16];
                let n = peer.read(&mut chunk).unwrap();
                assert!(chunk[..n].starts_with(&message(&["stats 1"])));
                is_quiet.recv().unwrap();
                let mut late = vec!["answer 1 pairs"];
                late.resize(100_000, "pair key a-value-of-some-length");
                let late = message(&late);
                // Begin after the client has begun to send.
                let n = peer.read(&mut chunk).unwrap();
                assert!(chunk[..n].starts_with(b"0011transaction 2"));
                peer.write_all(&late).unwrap();
                let mut tail = chunk[..n].to_vec();
                while !tail.ends_with(b"0000") {
                    let n = peer.read(&mut chunk).unwrap();
                    assert!(n > 0);
                    tail = [&tail[tail.len().min(4)..], &chunk[..n]].concat();
                }
                let denied = ["answer 2 refused", "status denied"];
                peer.write_all(&message(&denied)).unwrap();
            });
        client.set_timeout(Duration::from_secs(1));
        assert!(matches!(client.stats(), Err(Error::Unreachable(_))));
        quiet.send(()).unwrap();
        client.set_timeout(Duration::from_secs(60));
        let error = client.transact(&transaction(50_000)).unwrap_err();
        assert_eq!(error.status(), Some(Status::Denied));
        server.join().unwrap();
    }

    /// After a commit without an answer, a lost session is no failure.
    #[test]
    fn abort_after_a_lost_commit_is_unknown() {
        let (mut client, server) =
            served("commit", Duration::from_secs(60), |mut peer| {
                let mut chunk = [0; 4096];
                peer.read(&mut chunk).unwrap();
                let request = String::from_utf8_lossy(&chunk);
                let at = request.find("txid ").unwrap();
                let txid = &request[at..at + 37];
                let ok = "ok\0refs/heads/0\0\0";
                peer.write_all(&message(&["answer 1 prepared", txid, ok]))
                    .unwrap();
                peer.read(&mut chunk).unwrap();
            });
        let session = client.session(transaction(1)).unwrap();
        client.set_timeout(Duration::from_secs(1));
        let error = session.commit(&mut client).unwrap_err();
        assert!(matches!(error, Error::Unknown(_)), "{error:?}");
        let error = session.abort(&mut client).unwrap_err();
        assert!(matches!(error, Error::Unknown(_)), "{error:?}");
        server.join().unwrap();
    }

    /// The daemon cannot have a request of which it read only a part.
    #[test]
    fn half_a_request_was_not_sent() {
        let (done, is_done) = mpsc::channel::<()>();
        let (mut client, server) =
            served("half", Duration::from_secs(60), move |peer| {
                let _ = is_done.recv();
                drop(peer);
            });
        let conn = client.conn.as_mut().unwrap();
        let end = Instant::now() + Duration::from_secs(2);
        let lost = conn.send(&[b'x'; 1 << 22], end).unwrap_err();
        assert!(lost.over && lost.broken && !lost.sent);
        drop(done);
        server.join().unwrap();
    }

    #[test]
    fn longest_timeout_does_not_overflow() {
        let (mut client, server) =
            served("longest", Duration::MAX, |mut peer| {
                let mut chunk = [0; 64];
                peer.read(&mut chunk).unwrap();
                peer.write_all(&message(&["answer 1 pong"])).unwrap();
            });
        assert_eq!(client.ping(), Ok(()));
        server.join().unwrap();
    }
}
