package refd

import (
	"errors"
	"fmt"
	"time"
)

// Status is the fate of one ref, or the reason of a refusal. A Status is an
// error, so that errors.Is(err, refd.Stale) works for a RejectedError. OK and
// UnknownOutcome are the reason of no RejectedError.
type Status string

// The statuses of the protocol.
const (
	OK             Status = "ok"
	Stale          Status = "stale"
	Exists         Status = "exists"
	Missing        Status = "missing"
	Locked         Status = "locked"
	Conflict       Status = "conflict"
	BadName        Status = "badname"
	NoObject       Status = "noobject"
	NotCommit      Status = "notcommit"
	Denied         Status = "denied"
	HookDeclined   Status = "hook-declined"
	NoSpace        Status = "nospace"
	IO             Status = "io"
	Busy           Status = "busy"
	Deadline       Status = "deadline"
	Aborted        Status = "aborted"
	Unsupported    Status = "unsupported"
	UnknownOutcome Status = "unknown"
	Broken         Status = "broken"
	Duplicate      Status = "duplicate"
	NoRepo         Status = "norepo"
	BadRequest     Status = "badrequest"
	Limit          Status = "limit"
	NotSymref      Status = "notsymref"
)

func (s Status) Error() string { return string(s) }

// MayRetry says that the same request may succeed later without other action.
func (s Status) MayRetry() bool {
	switch s {
	case Locked, NoSpace, IO, Busy, Deadline:
		return true
	}
	return false
}

func (s Status) isKnown() bool {
	switch s {
	case OK, Stale, Exists, Missing, Locked, Conflict, BadName, NoObject,
		NotCommit, Denied, HookDeclined, NoSpace, IO, Busy, Deadline,
		Aborted, Unsupported, UnknownOutcome, Broken, Duplicate, NoRepo,
		BadRequest, Limit, NotSymref:
		return true
	}
	return false
}

// Outcome is the state of a whole transaction.
type Outcome string

// The outcomes of the protocol, and the answers about an undecided id.
const (
	Committed Outcome = "committed"
	Partial   Outcome = "partial"
	Rejected  Outcome = "rejected"
	Unknown   Outcome = "unknown"
	Pending   Outcome = "pending"
	NeverSeen Outcome = "never-seen"
	Expired   Outcome = "expired"
)

// RejectedError says that nothing of the request was done.
type RejectedError struct {
	Status     Status
	Text       string
	Results    []Result      // empty if the request was refused as a whole
	RetryAfter time.Duration // 0: not given
	Cause      error         // of a request that could not be sent, or nil
}

func (e *RejectedError) Error() string {
	if e.Text == "" {
		return "refd: " + string(e.Status)
	}
	return fmt.Sprintf("refd: %s: %s", e.Status, e.Text)
}

// Is matches the Status of the error.
func (e *RejectedError) Is(target error) bool { return target == e.Status }

func (e *RejectedError) Unwrap() error { return e.Cause }

// PartialError says that some refs were updated and others were not. Only a
// transaction that is not atomic can end like this.
type PartialError struct{ Report *Report }

func (e *PartialError) Error() string {
	failed := 0
	for _, r := range e.Report.Results {
		if r.Status != OK {
			failed++
		}
	}
	return fmt.Sprintf("refd: %d of %d refs failed", failed,
		len(e.Report.Results))
}

// UnknownError is neither success nor failure: the transaction may have been
// done, may still be done, or may never be done. Calling Transact again with
// the same Transaction is safe, and so is Query: the daemon does a transaction
// at most once.
type UnknownError struct {
	Txid    string
	Text    string
	Results []Result // as far as known
	Cause   error    // for example the error of the context, or nil
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("refd: the outcome of transaction %s is unknown: %s",
		e.Txid, e.Text)
}

func (e *UnknownError) Unwrap() error { return e.Cause }

// ProtocolError says that the peer's message is not a message of this version
// of the protocol. A transaction that may have been sent gets an UnknownError.
type ProtocolError struct{ Text string }

func (e *ProtocolError) Error() string { return "refd: " + e.Text }

// UnreachableError says that the daemon gave no answer in time. Only requests
// that change no ref get it.
type UnreachableError struct{ Cause error }

func (e *UnreachableError) Error() string {
	return "refd: no answer: " + e.Cause.Error()
}

func (e *UnreachableError) Unwrap() error { return e.Cause }

func isProtocol(err error) bool {
	var bad *ProtocolError
	return errors.As(err, &bad)
}
