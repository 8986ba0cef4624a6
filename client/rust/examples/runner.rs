//! The runner of the conformance suite: tests/clients/README.md.

#[path = "../tests/words/mod.rs"]
mod words;

use refd::{Client, Error, Report, Session, Transaction};
use std::io::BufRead;
use std::time::Duration;
use words::{decode, Fields, Words};

type Answer = (&'static str, Fields);

#[derive(Default)]
struct Runner {
    client: Option<Client>,
    txn: Option<Transaction>,
    held: Option<Session>,
}

fn failure(error: Error) -> Answer {
    let mut f = Fields::default();
    match error {
        Error::Unknown(unknown) => {
            f.add("txid", unknown.txid);
            f.results(&unknown.results);
            ("unknown", f)
        }
        Error::Partial(report) => {
            f.results(&report.results);
            ("partial", f)
        }
        Error::Rejected(rejected) => {
            f.add("status", rejected.status.word());
            f.results(&rejected.results);
            ("rejected", f)
        }
        Error::Protocol(_) => ("protocol", f),
        Error::Unreachable(_) => ("unreachable", f),
    }
}

fn reported(report: Report) -> Answer {
    let mut f = Fields::default();
    f.report(&report);
    ("report", f)
}

impl Runner {
    fn run(&mut self, command: &str, w: &Words) -> Result<Answer, Error> {
        let timeout = w.millis("timeout").unwrap_or(Duration::from_secs(60));
        let mut f = Fields::default();
        match command {
            "decode" => return Ok(decode(&w.bytes("bytes").unwrap())),
            "encode" => {
                f.add("bytes", w.encode()?);
                return Ok(("bytes", f));
            }
            "connect" => {
                let path = w.text("path").unwrap();
                let client = Client::connect_to(path, timeout)?;
                f.add("state", &client.hello().state);
                self.client = Some(client);
                return Ok(("hello", f));
            }
            "close" => {
                if let Some(client) = &mut self.client {
                    client.close();
                }
                return Ok(("closed", f));
            }
            _ => {}
        }
        let client = self.client.as_mut().unwrap();
        client.set_timeout(timeout);
        let txid = w.text("txid").unwrap_or_default();
        Ok(match command {
            "ping" => {
                client.ping()?;
                ("pong", f)
            }
            "pairs" => {
                let verb = w.text("verb").unwrap();
                let pairs = match verb.as_str() {
                    "status" => client.status()?,
                    "stats" => client.stats()?,
                    verb => client.pairs(verb)?,
                };
                f.add("first", &pairs[0].0 .0);
                ("pairs", f)
            }
            "pack" => {
                let pairs = client.pack(&w.repository())?;
                f.add("first", &pairs[0].0 .0);
                ("pairs", f)
            }
            "look" => {
                let pairs = client.look(&w.repository())?;
                f.add("first", &pairs[0].0 .0);
                ("pairs", f)
            }
            "session" | "session-again" => {
                let txn = match command {
                    "session" => w.transaction(),
                    _ => self.txn.take().unwrap(),
                };
                // A session takes its transaction: the id makes it again.
                let again = self
                    .txn
                    .insert(Transaction::resume(&txn.repository, txn.txid()));
                again.updates = txn.updates.clone();
                let session = client.session(txn)?;
                f.results(&session.results);
                self.held = Some(session);
                ("prepared", f)
            }
            "log" => {
                f.page(&client.log(&w.selection())?);
                ("page", f)
            }
            "watch" => {
                f.page(&client.watch(&w.selection())?);
                ("page", f)
            }
            "transact" => {
                let txn = self.txn.insert(w.transaction());
                reported(client.transact(txn)?)
            }
            "again" => reported(client.transact(self.txn.as_ref().unwrap())?),
            "commit" => reported(self.held.as_ref().unwrap().commit(client)?),
            "abort" => reported(self.held.as_ref().unwrap().abort(client)?),
            "query" => reported(client.query(&txid)?),
            "cancel" => reported(client.cancel(&txid)?),
            other => panic!("the command {other}"),
        })
    }
}

fn main() {
    let mut runner = Runner::default();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split_whitespace();
        let command = words.next().unwrap();
        let (name, fields) = runner
            .run(command, &Words::parse(words))
            .unwrap_or_else(failure);
        println!(
            "{}",
            [&[name.to_string()], &fields.0[..]].concat().join(" ")
        );
    }
}
