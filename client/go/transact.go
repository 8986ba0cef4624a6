package refd

import (
	"context"
	"errors"
	"time"
)

// The rules of resending: only an answer proves success or failure. A request
// that was sent and has no answer is asked for by its id. A transaction is sent
// again only after never-seen. A session ends with its connection. A commit is
// sent again only if the first was refused or not sent.

// fit checks that the answer fits the request, and gives every update a result.
func (k *call) fit(a *answer) error {
	fits := a.kind == "refused"
	for _, kind := range k.kinds {
		fits = fits || kind == a.kind
	}
	if !fits {
		return malformed("the answer %s does not fit", a.kind)
	}
	if k.txn == nil {
		return nil
	}
	if a.txid != "" && a.txid != k.txn.Txid {
		return malformed("an answer about a different transaction")
	}
	if a.kind == "prepared" {
		if len(a.results) != len(k.txn.Updates) {
			return malformed("the results do not fit the updates")
		}
		for i, r := range a.results {
			if r.Ref != k.txn.Updates[i].Ref {
				return malformed("a result of a different ref")
			}
		}
	}
	if a.kind == "results" {
		return a.report.complete(k.txn.Updates)
	}
	return nil
}

func outcomeOf(results []Result) Outcome {
	ok := 0
	for _, r := range results {
		if r.Status == UnknownOutcome {
			return Unknown
		}
		if r.Status == OK {
			ok++
		}
	}
	switch {
	case ok == len(results):
		return Committed
	case ok > 0:
		return Partial
	}
	return Rejected
}

// complete adds a result for every update that never happened. The outcome must
// agree with the results.
func (r *Report) complete(updates []Update) error {
	results := make([]Result, len(updates))
	at := 0
	for i, u := range updates {
		if at < len(r.Results) && r.Results[at].Ref == u.Ref {
			results[i] = r.Results[at]
			at++
			continue
		}
		results[i] = Result{Ref: u.Ref, Status: Aborted,
			Text: "the daemon stopped before its turn"}
	}
	if at < len(r.Results) || r.Updates != len(updates) {
		return malformed("the results do not fit the updates")
	}
	outcome := outcomeOf(results)
	if (outcome == Committed) != (r.Outcome == Committed) {
		return malformed("the outcome does not agree with the results")
	}
	if r.Outcome != Unknown {
		r.Outcome = outcome
	}
	r.Results = results
	return nil
}

// verdict returns the report of a success; every other outcome is an error.
func verdict(r *Report) (*Report, error) {
	switch r.Outcome {
	case Committed:
		return r, nil
	case Partial:
		return nil, &PartialError{r}
	case Rejected:
		cause := r.Results[0]
		for _, result := range r.Results {
			if result.Status != Aborted {
				cause = result // of an atomic transaction
				break
			}
		}
		return nil, &RejectedError{Status: cause.Status,
			Text: cause.String(), Results: r.Results}
	}
	return nil, &UnknownError{Txid: r.Txid, Results: r.Results,
		Text: "the daemon does not know"}
}

func refusal(a *answer) error {
	return &RejectedError{Status: a.status, Text: a.text,
		RetryAfter: time.Duration(a.retryAfterMs) * time.Millisecond}
}

// refused is the error of a refused transaction.
func refused(txid string, a *answer) error {
	if a.status == UnknownOutcome {
		return &UnknownError{Txid: txid, Text: a.text}
	}
	return refusal(a)
}

// A clock tells the time that the daemon has for a transaction.
type clock struct{ end time.Time }

func (t *Transaction) clock(ctx context.Context) (clock, error) {
	if t.Deadline != 0 && (t.Deadline < time.Millisecond ||
		t.Deadline > deadlineMaxMs*time.Millisecond) {
		return clock{}, &RejectedError{Status: BadRequest,
			Text: "a deadline of " + t.Deadline.String()}
	}
	left := t.Deadline
	if left == 0 {
		end, _ := ctx.Deadline()
		left = time.Until(end) * 3 / 4
	}
	return clock{time.Now().Add(left)}, nil
}

func (c clock) left() time.Duration {
	left := time.Until(c.end)
	if left < time.Millisecond {
		return time.Millisecond
	}
	if left > deadlineMaxMs*time.Millisecond {
		return deadlineMaxMs * time.Millisecond
	}
	return left
}

func (t *Transaction) request(verb string, c clock, kinds ...string) *call {
	return &call{kinds: kinds, txn: t, serving: true,
		encode: func(id uint32) ([]byte, error) {
			return encodeTransaction(verb, id, t, c.left())
		}}
}

func (t *Transaction) query() *call {
	return &call{kinds: aboutID, txn: t, serving: true,
		encode: simple("query", t.Txid)}
}

// unsent is the error when the daemon cannot have the request.
func unsent(lost *lostError) error {
	if isProtocol(lost.cause) {
		return lost.cause
	}
	status := Busy
	if lost.denied {
		status = Denied
	}
	return &RejectedError{Status: status,
		Text: "nothing was sent: " + lost.Error(), Cause: lost.cause}
}

func (t *Transaction) unknown(text string, cause error) error {
	if text == "" && cause != nil {
		text = cause.Error()
	}
	return &UnknownError{Txid: t.Txid, Text: text, Cause: cause}
}

// Transact does a transaction. The error is nil if and only if all refs are ok.
// If the context is done before the answer comes, the error is an UnknownError,
// or a RejectedError if nothing was sent.
func (c *Client) Transact(ctx context.Context, t *Transaction) (*Report,
	error) {
	ctx, cancel := c.context(ctx)
	defer cancel()
	t.identifyOnce()
	clock, err := t.clock(ctx)
	if err != nil {
		return nil, err
	}
	var try tries
	isAsking := t.maybeSent.Load()
	for {
		k := t.request("transaction", clock, "results")
		if isAsking {
			k = t.query()
		}
		a, err := c.call(ctx, k)
		var lost *lostError
		if errors.As(err, &lost) {
			if lost.sent {
				t.maybeSent.Store(true)
				isAsking = true
			}
			if try.isHopeless(lost) {
				if t.maybeSent.Load() {
					return nil, t.unknown("", lost.cause)
				}
				return nil, unsent(lost)
			}
			try.sleep(ctx)
			continue
		}
		if err != nil {
			return nil, err
		}
		t.maybeSent.Store(true)
		switch a.kind {
		case "results":
			return verdict(a.report)
		case "expired":
			return nil, t.unknown("the id is too old", nil)
		case "never-seen":
			isAsking = false
			continue
		case "pending":
			try.sleep(ctx)
			continue
		}
		retry := time.Duration(a.retryAfterMs) * time.Millisecond
		switch {
		case isAsking && a.status == Busy:
			try.sleep(ctx)
		case isAsking:
			return nil, t.unknown(a.text, a.status)
		case retry > 0 && retry < clock.left():
			sleep(ctx, retry)
		default:
			return nil, refused(t.Txid, a)
		}
	}
}

// Session is a prepared session, which holds the locks of its refs. Call Commit
// or Abort.
type Session struct {
	// The refs that are locked, and the refs that failed.
	Results []Result
	// The commit also rewrites packed-refs.
	RewritesPacked bool

	client *Client
	txn    *Transaction
	conn   *conn
	// The daemon may have a commit.
	isOpen bool
}

var errSessionGone = &RejectedError{Status: Aborted,
	Text: "the session ended with its connection"}

// Session locks all refs of a transaction. If the transaction was sent before,
// Session asks what became of it first.
func (c *Client) Session(ctx context.Context, t *Transaction) (*Session,
	error) {
	ctx, cancel := c.context(ctx)
	defer cancel()
	t.identifyOnce()
	clock, err := t.clock(ctx)
	if err != nil {
		return nil, err
	}
	var try tries
	isKnown := t.maybeSent.Load() // an earlier request had the id
	isAsking := isKnown
	for {
		k := t.request("session", clock, "results", "prepared")
		if isAsking {
			k = t.query()
		}
		a, err := c.call(ctx, k)
		var lost *lostError
		if errors.As(err, &lost) {
			if lost.sent {
				t.maybeSent.Store(true)
			}
			isHopeless := try.isHopeless(lost)
			if lost.sent && lost.over && !isAsking {
				k.conn.post(len(t.Updates),
					simple("cancel", t.Txid))
			}
			switch {
			case isKnown && isHopeless:
				return nil, t.unknown("", lost.cause)
			case lost.sent && lost.over:
				return nil, &RejectedError{Status: Deadline,
					Text:  "not prepared in time",
					Cause: lost.cause}
			case lost.sent && !isKnown:
				return nil, errSessionGone
			case isHopeless:
				return nil, unsent(lost)
			}
			isAsking = isKnown
			try.sleep(ctx)
			continue
		}
		if err != nil {
			return nil, err
		}
		// Transact asks first: an answer to a commit can be lost.
		t.maybeSent.Store(true)
		if a.kind == "prepared" {
			return &Session{Results: a.results,
				RewritesPacked: a.rewritesPacked, client: c,
				txn: t, conn: k.conn}, nil
		}
		retry := time.Duration(a.retryAfterMs) * time.Millisecond
		switch {
		case a.kind == "never-seen":
			isKnown, isAsking = false, false
		case a.kind == "pending": // perhaps a session that is prepared
			isAsking = false
		case a.kind == "expired":
			return nil, t.unknown("the id is too old", nil)
		case isKnown && (!isAsking || a.status == Busy):
			// Without a lock, only the answer to a query is about
			// the id.
			isAsking = true
			try.sleep(ctx)
		case a.kind == "results":
			if _, err := verdict(a.report); err != nil {
				return nil, err
			}
			return nil, &UnknownError{Txid: t.Txid,
				Text:    "the id was committed before",
				Results: a.report.Results}
		case isKnown:
			return nil, t.unknown(a.text, a.status)
		case retry > 0 && retry < clock.left():
			sleep(ctx, retry)
		default:
			return nil, refused(t.Txid, a)
		}
	}
}

// Commit publishes the refs. The error is nil if and only if all refs are ok.
// After an UnknownError, Commit asks what became of the first.
func (s *Session) Commit(ctx context.Context) (*Report, error) {
	ctx, cancel := s.client.context(ctx)
	defer cancel()
	t := s.txn
	var try tries
	isAsking := s.isOpen
	s.isOpen = true
	for {
		k := &call{encode: simple("commit", t.Txid), kinds: aboutID,
			txn: t, conn: s.conn}
		if isAsking {
			k = t.query()
		}
		a, err := s.client.call(ctx, k)
		var lost *lostError
		if errors.As(err, &lost) {
			if !isAsking && !lost.sent {
				s.isOpen = false
				return nil, s.unsent(lost)
			}
			isAsking = true
			if try.isHopeless(lost) {
				return nil, t.unknown("", lost.cause)
			}
			try.sleep(ctx)
			continue
		}
		if err != nil {
			return nil, err
		}
		switch a.kind {
		case "results":
			return verdict(a.report)
		case "never-seen":
			return nil, errSessionGone
		case "expired":
			return nil, t.unknown("the id is too old", nil)
		}
		switch {
		case a.kind == "pending" || (isAsking && a.status == Busy):
			isAsking = true
			try.sleep(ctx)
		case isAsking:
			return nil, t.unknown(a.text, a.status)
		default:
			// The refused commit did nothing: another may be sent.
			s.isOpen = a.status == UnknownOutcome
			return nil, refused(t.Txid, a)
		}
	}
}

// unsent is the error of a commit that was not sent. If only the context is
// done, the session is still prepared.
func (s *Session) unsent(lost *lostError) error {
	if lost.over {
		return unsent(lost)
	}
	return errSessionGone
}

// Abort releases the locks. The outcome of the report is not Rejected only if
// the session was committed before.
func (s *Session) Abort(ctx context.Context) (*Report, error) {
	ctx, cancel := s.client.context(ctx)
	defer cancel()
	gone := &Report{Txid: s.txn.Txid, Outcome: Rejected,
		Updates: len(s.txn.Updates)}
	for _, u := range s.txn.Updates {
		gone.Results = append(gone.Results,
			Result{Ref: u.Ref, Status: Aborted})
	}
	a, err := s.client.call(ctx, &call{encode: simple("abort", s.txn.Txid),
		kinds: aboutID, txn: s.txn, conn: s.conn})
	var lost *lostError
	switch {
	case errors.As(err, &lost) && s.isOpen:
		return nil, s.txn.unknown("", lost.cause)
	case errors.As(err, &lost) && lost.over:
		return nil, &UnreachableError{lost.cause}
	case errors.As(err, &lost):
		return gone, nil
	case err != nil:
		return nil, err
	case a.kind == "refused" && s.isOpen:
		return nil, s.txn.unknown(a.text, a.status)
	case a.kind == "refused":
		return nil, refused(s.txn.Txid, a)
	case a.kind == "never-seen":
		return gone, nil
	case a.kind != "results":
		return nil, s.txn.unknown("the daemon answers "+a.kind, nil)
	}
	return a.report, nil
}
