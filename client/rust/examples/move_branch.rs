//! Moves a branch, tags it in the same transaction, and prints the changes:
//! move_branch /srv/git/a.git refs/heads/main NEW-COMMIT

use refd::{Client, Error, Repository, Selection, Status, Transaction};
use std::process::exit;

fn run(args: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let (git_dir, branch, commit) = match args {
        [git_dir, branch, commit] => (git_dir, branch, commit),
        _ => return Err("usage: move_branch GIT-DIR BRANCH COMMIT".into()),
    };
    let repo = Repository::open(git_dir)?;
    let mut client = Client::connect()?;
    let mut txn = Transaction::new(&repo)?;
    txn.update(branch.as_str(), commit, None);
    txn.create(format!("refs/tags/at-{commit}"), commit);
    txn.atomic = true;
    let report = match client.transact(&txn) {
        Ok(report) => report,
        // Done or not: the id tells later.
        Err(Error::Unknown(unknown)) => {
            let text = format!("ask: refd query {}", unknown.txid);
            return Err(text.into());
        }
        Err(error) if error.status() == Some(Status::Exists) => {
            let text = format!("nothing was done: tagged before: {error}");
            return Err(text.into());
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(token) = report.token {
        println!("committed {token}");
    }
    let page = client.log(&Selection {
        repository: Some(repo),
        txid: Some(txn.txid().to_string()),
        ..Selection::default()
    })?;
    let shown = |oid: Option<String>| oid.unwrap_or_default();
    for record in page.records {
        for c in record.changes {
            let (old, new) = (shown(c.old), shown(c.new));
            println!("{} {} {old} -> {new}", record.lsn, c.name);
        }
    }
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&args) {
        eprintln!("{error}");
        exit(1);
    }
}
