//! The sentences of git for details: see "Details" in proto/PROTOCOL.md.

/// "<word>: <sentence>"; %1 to %3 are the arguments. The same lines are in all
/// clients: tests/scenario/clients.sh compares them with the protocol.
const SENTENCES: &str = "
differs: cannot lock ref '%1': is at %2 but expected %3
symref-differs: verifying symref target: '%1': is at %2 but expected %3
exists: cannot lock ref '%1': reference already exists
dangling: cannot lock ref '%1': dangling symref already exists
unresolved: cannot lock ref '%1': unable to resolve reference '%2'
absent: cannot lock ref '%1': reference is missing but expected %2
not-symref: cannot lock ref '%1': expected symref with target '%2': but is a regular ref
broken: cannot lock ref '%1': unable to resolve reference '%2': reference broken
unreadable: cannot lock ref '%1': error reading reference
locked: cannot lock ref '%1': Unable to create '%2': File exists.
packed-locked: Unable to create '%1': File exists.
name-taken: '%2' exists; cannot create '%3'
name-taken-early: cannot lock ref '%1': '%2' exists; cannot create '%3'
names-clash: cannot process '%2' and '%3' at the same time
names-clash-early: cannot lock ref '%1': cannot process '%2' and '%3' at the same time
directory: cannot lock ref '%1': there is a non-empty directory '%2' blocking reference '%3'
not-directory: cannot lock ref '%1': unable to create lock file %2; non-directory in the way
logs-below: cannot update the ref '%1': there are still logs under '%2'
log-blocked: cannot update the ref '%1': unable to append to '%2': Not a directory
duplicate: multiple updates for ref '%1' not allowed
duplicate-head: multiple updates for 'HEAD' (including one via its referent '%1') are not allowed
duplicate-symref: multiple updates for '%1' (including one via symref '%2') are not allowed
no-object: trying to write ref '%1' with nonexistent object %2
no-commit: trying to write non-commit object %1 to branch '%2'
bad-name: refusing to update ref with bad name '%1'
bad-target: refusing to point ref '%1' to bad name '%2'
funny-name: funny refname
";

/// None if there is no detail, or one of a newer daemon.
pub(crate) fn sentence(detail: &[String]) -> Option<String> {
    let start = format!("{}: ", detail.first()?);
    let said = SENTENCES.lines().find_map(|l| l.strip_prefix(&start))?;
    let mut parts = said.split('%');
    let mut out = parts.next()?.to_string();
    for part in parts {
        let nr: usize = part.get(..1)?.parse().ok()?;
        out += detail.get(nr).map_or("", |s| s);
        out += &part[1..];
    }
    Some(out)
}
