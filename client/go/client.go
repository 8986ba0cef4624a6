// Package refd is the client of refd, the ref store daemon for Git servers.
//
//	client, err := refd.Dial(ctx, "")
//	repo, err := refd.OpenRepository("/srv/git/a.git")
//	txn := refd.NewTransaction(repo).Update("refs/heads/main", new, old)
//	_, err = client.Transact(ctx, txn)
//
// A call returns a nil error only after success. Every other end of a
// transaction is a type: RejectedError (nothing was done; errors.Is tells the
// Status), PartialError, or UnknownError (done or not: ask, or send the same
// Transaction again). proto/PROTOCOL.md defines the protocol.
package refd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// DefaultTimeout is the Timeout of a new Client.
const DefaultTimeout = 40 * time.Second

const (
	misfitsMax = 3
	napMin     = 10 * time.Millisecond
	napMax     = 250 * time.Millisecond
)

// isOwn tells whether path is of this user or root: su(1) leaves the directory
// of the calling user in the environment.
func isOwn(path string) bool {
	var st syscall.Stat_t
	return syscall.Lstat(path, &st) == nil &&
		(st.Uid == 0 || int(st.Uid) == os.Geteuid())
}

// DefaultSocket returns REFD_SOCKET, or the socket of a daemon of this user, or
// the socket of the daemon of the system.
func DefaultSocket() string {
	if path := os.Getenv("REFD_SOCKET"); path != "" {
		return path
	}
	own := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "refd.sock")
	if filepath.IsAbs(own) && isOwn(filepath.Dir(own)) && isOwn(own) {
		return own
	}
	return "/run/refd/refd.sock"
}

// Client is a connection to the daemon, made again when it is lost. All methods
// may be called from several goroutines at once; their requests share the
// connection.
type Client struct {
	// The longest time of a call, besides the context of the call. Set it
	// before the first call.
	Timeout time.Duration

	path string
	lock chan struct{} // holds a token while conn is replaced
	conn *conn
}

// Dial connects to the daemon. An empty path is DefaultSocket.
func Dial(ctx context.Context, path string) (*Client, error) {
	if path == "" {
		path = DefaultSocket()
	}
	c := &Client{Timeout: DefaultTimeout, path: path,
		lock: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var err error
	c.conn, err = dial(ctx, path)
	if err != nil && !isProtocol(err) {
		err = &UnreachableError{err}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the connection. The daemon aborts the open sessions.
func (c *Client) Close() error {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	c.conn.close(errClosed)
	return nil
}

// Hello returns the daemon's last first message.
func (c *Client) Hello() Hello {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	return *c.conn.hello
}

func (c *Client) context(ctx context.Context) (context.Context,
	context.CancelFunc) {
	return context.WithTimeout(ctx, c.Timeout)
}

// connected returns the connection, or a new one. If serving is set, the
// daemon must serve.
func (c *Client) connected(ctx context.Context, serving bool) (*conn, error) {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, &lostError{cause: ctx.Err(), over: true}
	}
	now := c.conn
	if !now.isOpen() || (serving && now.hello.State != "serving") {
		now.close(errClosed)
		next, err := dial(ctx, c.path)
		if err != nil {
			return nil, &lostError{cause: err,
				over: ctx.Err() != nil}
		}
		now, c.conn = next, next
	}
	if serving && now.hello.State != "serving" {
		now.close(errClosed)
		return nil, &lostError{cause: errors.New("the daemon is " +
			now.hello.State)}
	}
	return now, nil
}

// A call is a request, and the kinds of answers that fit the request.
type call struct {
	encode  func(id uint32) ([]byte, error)
	kinds   []string
	txn     *Transaction // results must fit its updates
	serving bool
	conn    *conn // no other connection will do
}

// updates returns the most results in the answer. A call about an id does not
// know them.
func (k *call) updates() int {
	if k.txn != nil {
		return len(k.txn.Updates)
	}
	if k.kinds[0] == "results" {
		return updatesMax
	}
	return 0
}

func (c *Client) call(ctx context.Context, k *call) (*answer, error) {
	if k.conn == nil {
		now, err := c.connected(ctx, k.serving)
		if err != nil {
			return nil, err
		}
		k.conn = now
	} else if !k.conn.isOpen() {
		return nil, k.conn.lost(false)
	}
	a, err := k.conn.ask(ctx, k.updates(), k.encode)
	if err != nil {
		return nil, err
	}
	if err = k.fit(a); err != nil {
		k.conn.close(err)
		return nil, &lostError{cause: err, sent: true}
	}
	return a, nil
}

// tries holds pauses that become longer, and the failures so far.
type tries struct {
	nap     time.Duration
	misfits int
	why     error
}

// isHopeless notes a failure. If only the time is over, the failure before has
// the better reason.
func (t *tries) isHopeless(lost *lostError) bool {
	if isProtocol(lost.cause) {
		t.misfits++
		return !lost.sent || t.misfits >= misfitsMax
	}
	if lost.over && t.why != nil {
		lost.cause = t.why
	}
	t.why = lost.cause
	return lost.over || lost.denied
}

// sleep pauses, at most until the context is done.
func (t *tries) sleep(ctx context.Context) {
	if t.nap == 0 {
		t.nap = napMin
	}
	sleep(ctx, t.nap)
	if t.nap *= 2; t.nap > napMax {
		t.nap = napMax
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ---- questions ----

func (c *Client) ask(ctx context.Context, kinds []string,
	encode func(id uint32) ([]byte, error)) (*answer, error) {
	return c.question(ctx, false, kinds, encode)
}

// question asks. If isOnce is set, it asks again only if nothing was sent.
func (c *Client) question(ctx context.Context, isOnce bool, kinds []string,
	encode func(id uint32) ([]byte, error)) (*answer, error) {
	ctx, cancel := c.context(ctx)
	defer cancel()
	var t tries
	for {
		a, err := c.call(ctx, &call{encode: encode, kinds: kinds})
		var lost *lostError
		if errors.As(err, &lost) {
			if isProtocol(lost.cause) {
				return nil, lost.cause
			}
			if isOnce && lost.sent {
				return nil, &UnreachableError{fmt.Errorf(
					"no answer, and not sent again: %w",
					lost.cause)}
			}
			if t.isHopeless(lost) {
				return nil, unanswered(lost)
			}
			t.sleep(ctx)
			continue
		}
		if err != nil {
			return nil, err
		}
		if a.kind == "refused" && a.status == UnknownOutcome {
			return nil, malformed("a question is unknown")
		} else if a.kind == "refused" {
			return nil, refusal(a)
		}
		return a, nil
	}
}

func unanswered(lost *lostError) error {
	if lost.denied {
		return &RejectedError{Status: Denied, Text: lost.cause.Error()}
	}
	return &UnreachableError{lost.cause}
}

func simple(verb, txid string) func(id uint32) ([]byte, error) {
	return func(id uint32) ([]byte, error) {
		return encodeSimple(verb, id, txid)
	}
}

// Ping checks that the daemon answers.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.ask(ctx, []string{"pong"}, simple("ping", ""))
	return err
}

// Pairs returns the pairs of a verb without headers, as status or stats. The
// verbs of administrators, as drain, need their socket. A drain is not sent
// again: without an answer, it may have ended or may go on.
func (c *Client) Pairs(ctx context.Context, verb string) ([]Pair, error) {
	// If a daemon ends while it is drained, the next one must not be drained.
	a, err := c.question(ctx, verb == "drain", []string{"pairs"},
		simple(verb, ""))
	if err != nil {
		return nil, err
	}
	return a.pairs, nil
}

// Pack moves the loose refs of a repository to packed-refs. The pairs have the
// numbers of refs that were packed, and that were left.
func (c *Client) Pack(ctx context.Context, repo *Repository) ([]Pair, error) {
	return c.askForRepository(ctx, "pack", repo)
}

// Look looks in a repository for changes by writers who did not tell the
// daemon, and records them. The pairs have the numbers of changes that were
// recorded, and that are left for a later look.
func (c *Client) Look(ctx context.Context, repo *Repository) ([]Pair, error) {
	return c.askForRepository(ctx, "look", repo)
}

func (c *Client) askForRepository(ctx context.Context, verb string,
	repo *Repository) ([]Pair, error) {
	a, err := c.ask(ctx, []string{"pairs"},
		func(id uint32) ([]byte, error) {
			return encodeForRepository(verb, id, repo)
		})
	if err != nil {
		return nil, err
	}
	return a.pairs, nil
}

var aboutID = []string{"results", "pending", "never-seen", "expired"}

func (c *Client) askAbout(ctx context.Context, verb, txid string) (*Report,
	error) {
	a, err := c.ask(ctx, aboutID, simple(verb, txid))
	if err != nil {
		return nil, err
	}
	if a.txid != txid {
		return nil, malformed("an answer about a different transaction")
	}
	return a.report, nil
}

// Query returns the report about a transaction or session, of any outcome.
func (c *Client) Query(ctx context.Context, txid string) (*Report, error) {
	return c.askAbout(ctx, "query", txid)
}

// Cancel gives up a waiting transaction. See the outcome of the report.
func (c *Client) Cancel(ctx context.Context, txid string) (*Report, error) {
	return c.askAbout(ctx, "cancel", txid)
}

func (c *Client) history(ctx context.Context, verb string,
	s Selection) (*Page, error) {
	a, err := c.ask(ctx, []string{"records"},
		func(id uint32) ([]byte, error) {
			return encodeHistory(verb, id, &s)
		})
	if err != nil {
		return nil, err
	}
	return a.page, nil
}

// Log returns one page of past changes; s.Behind(page) continues.
func (c *Client) Log(ctx context.Context, s Selection) (*Page, error) {
	return c.history(ctx, "log", s)
}

// Watch waits for changes, and returns a page, which may be empty. Without
// s.After it returns at once: s.Behind(page) selects all changes behind this
// moment.
func (c *Client) Watch(ctx context.Context, s Selection) (*Page, error) {
	// Changes from now on: if the connection is lost, the same request would
	// mean a later moment.
	if s.After == nil {
		s.Wait = time.Millisecond
	}
	return c.history(ctx, "watch", s)
}
