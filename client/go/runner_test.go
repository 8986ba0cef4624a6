package refd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain runs the tests, or with REFD_RUNNER the runner of the conformance
// suite: see tests/clients/README.md.
func TestMain(m *testing.M) {
	if os.Getenv("REFD_RUNNER") == "" {
		os.Exit(m.Run())
	}
	r := &runner{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		name, fields := r.run(words[0], parseWords(words[1:]))
		all := append([]string{name}, fields...)
		fmt.Println(strings.Join(all, " "))
	}
}

// ---- arguments ----

type words map[string]string

func parseWords(list []string) words {
	w := words{}
	for _, word := range list {
		key, value, _ := strings.Cut(word, "=")
		value, err := url.PathUnescape(value)
		if err != nil {
			panic(err)
		}
		w[key] = value
	}
	return w
}

func (w words) has(key string) bool { _, is := w[key]; return is }

func (w words) number(key string, base int) uint64 {
	n, err := strconv.ParseUint(w[key], base, 64)
	if err != nil && w.has(key) {
		panic(err)
	}
	return n
}

func (w words) millis(key string) *time.Duration {
	if !w.has(key) {
		return nil
	}
	d := time.Duration(w.number(key, 10)) * time.Millisecond
	return &d
}

func (w words) repository() *Repository {
	repo := &Repository{GitDir: w["git-dir"],
		CommonDev: w.number("common-dir.dev", 10),
		CommonIno: w.number("common-dir.ino", 10)}
	if w.has("repo") {
		var err error
		if repo, err = OpenRepository(w["repo"]); err != nil {
			panic(err)
		}
	}
	repo.ObjectFormat = w["object-format"]
	return repo
}

func (w words) transaction() *Transaction {
	t := NewTransaction(w.repository())
	if w.has("txid") {
		t = Resume(w.repository(), w["txid"])
	}
	t.Atomic, t.CreateReflog, t.Push = w.has("atomic"),
		w.has("create-reflog"), w.has("push")
	if message, is := w["message"]; is {
		t.Message = &message
	}
	t.Committer, t.Durability = w["committer"], w["durability"]
	t.Level = w["level.kind"]
	if w.has("level.nodes") {
		t.Level += "=" + w["level.nodes"]
	}
	if d := w.millis("deadline"); d != nil {
		t.Deadline = *d
	}
	if w.has("umask") {
		umask := uint32(w.number("umask", 8))
		t.Umask = &umask
	}
	t.LogAllRefUpdates = w["log-all-ref-updates"]
	t.SharedRepository = w["shared-repository"]
	t.RefLockTimeout = w.millis("ref-lock-timeout")
	t.PackedRefsTimeout = w.millis("packed-refs-timeout")
	t.Trace2Sid = w["trace2-sid"]
	t.Identity = map[string]string{}
	for key, value := range w {
		if name := strings.TrimPrefix(key, "identity."); name != key {
			t.Identity[name] = value
		}
	}
	for i := 0; w.has(fmt.Sprintf("updates.%d.command", i)); i++ {
		at := fmt.Sprintf("updates.%d.", i)
		t.Add(Update{w[at+"command"], w[at+"ref"], w[at+"oid"],
			w[at+"old-oid"], w[at+"target"], w[at+"old-target"],
			w.has(at + "no-deref")})
	}
	return t
}

func (w words) position(key string) *Position {
	if !w.has(key + ".lsn") {
		return nil
	}
	return &Position{w.number(key+".lsn", 10),
		uint32(w.number(key+".change", 10))}
}

func (w words) selection() Selection {
	s := Selection{Txid: w["txid"], User: w["user"],
		SinceMs: w.number("since", 10), UntilMs: w.number("until", 10),
		Journal: w["journal"], After: w.position("after"),
		Before: w.position("before"), Reverse: w.has("reverse"),
		Limit: uint32(w.number("limit", 10)), All: w.has("all"),
		Origin: w.has("origin")}
	if w.has("repo") || w.has("git-dir") {
		s.Repository = w.repository()
	}
	for i := 0; w.has(fmt.Sprintf("ref.%d", i)); i++ {
		s.Refs = append(s.Refs, w[fmt.Sprintf("ref.%d", i)])
	}
	if w.has("uid") {
		uid := uint32(w.number("uid", 10))
		s.Uid = &uid
	}
	if d := w.millis("deadline"); d != nil {
		s.Wait = *d
	}
	return s
}

func (w words) encode() ([]byte, error) {
	verb, id := w["verb"], uint32(w.number("id", 10))
	switch verb {
	case "transaction", "session":
		t := w.transaction()
		return encodeTransaction(verb, id, t, t.Deadline)
	case "log", "watch":
		s := w.selection()
		return encodeHistory(verb, id, &s)
	}
	if w.has("git-dir") {
		return encodeForRepository(verb, id, w.repository())
	}
	return encodeSimple(verb, id, w["txid"])
}

// ---- results ----

type fields []string

func (f *fields) add(key, value string) {
	if value == "" {
		return
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			c >= '0' && c <= '9' ||
			strings.IndexByte("_./:@-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	*f = append(*f, key+"="+b.String())
}

func (f *fields) number(key string, n uint64) {
	f.add(key, strconv.FormatUint(n, 10))
}

func (f *fields) some(key string, n uint64) {
	if n != 0 {
		f.number(key, n)
	}
}

func (f *fields) flag(key string, set bool) {
	if set {
		f.add(key, "true")
	}
}

func (f *fields) detail(at string, detail []string) {
	for i, d := range detail {
		f.add(fmt.Sprintf("%sdetail.%d", at, i), d)
	}
}

func (f *fields) results(results []Result) {
	for i, r := range results {
		at := fmt.Sprintf("results.%d.", i)
		f.add(at+"status", string(r.Status))
		f.add(at+"ref", r.Ref)
		f.add(at+"oid", r.Found)
		f.add(at+"text", r.Text)
		f.detail(at, r.Detail)
	}
}

func (f *fields) report(r *Report) {
	f.add("outcome", string(r.Outcome))
	f.add("txid", r.Txid)
	switch r.Outcome {
	case Committed, Partial, Rejected, Unknown:
		f.results(r.Results)
		f.number("updates", uint64(r.Updates))
		log, lsn, _ := strings.Cut(r.Token, ":")
		f.add("token.log", log)
		f.add("token.lsn", lsn)
	}
}

func (f *fields) page(p *Page) {
	f.add("journal", p.Journal)
	if p.Gap != nil {
		f.number("gap", *p.Gap)
	}
	f.flag("more", p.More)
	f.number("next.lsn", p.Next.Lsn)
	f.some("next.change", uint64(p.Next.Number))
	for i, r := range p.Records {
		at := fmt.Sprintf("records.%d.", i)
		f.number(at+"lsn", r.Lsn)
		f.number(at+"time", r.TimeMs)
		f.number(at+"uid", uint64(r.Uid))
		f.number(at+"pid", r.Pid)
		f.add(at+"txid", r.Txid)
		f.add(at+"path", r.Path)
		f.some(at+"voids", r.Voids)
		f.add(at+"origin", string(r.Origin))
		f.add(at+"committer", r.Committer)
		f.add(at+"message", r.Message)
		for name, value := range r.Identity {
			f.add(at+"identity."+name, value)
		}
		for j, c := range r.Changes {
			at := fmt.Sprintf("%schanges.%d.", at, j)
			f.number(at+"change", uint64(c.Number))
			f.add(at+"status", string(c.Status))
			f.add(at+"ref", c.Ref)
			f.add(at+"old-oid", c.Old)
			f.add(at+"oid", c.New)
			f.add(at+"target", c.Target)
			f.add(at+"text", c.Text)
			f.detail(at, c.Detail)
		}
	}
}

func (f *fields) hello(h *Hello) {
	f.number("version", uint64(h.Version))
	f.add("software", h.Software)
	f.add("state", h.State)
	f.number("horizon", h.HorizonMs)
	f.number("pid", h.Pid)
	f.number("limit.updates", uint64(h.MaxUpdates))
	f.number("limit.bytes", uint64(h.MaxBytes))
	if h.HasProgress {
		f.number("progress.done", h.Done)
		f.number("progress.total", h.Total)
	}
}

func (f *fields) answer(a *answer) {
	f.add("kind", a.kind)
	f.number("id", uint64(a.id))
	f.flag("rewrites-packed", a.rewritesPacked)
	f.add("status", string(a.status))
	f.add("text", a.text)
	f.some("retry-after", a.retryAfterMs)
	f.results(a.results)
	for i, pair := range a.pairs {
		f.add(fmt.Sprintf("pairs.%d.0", i), pair.Key)
		f.add(fmt.Sprintf("pairs.%d.1", i), pair.Value)
	}
	if a.kind == "results" {
		f.report(a.report)
	} else {
		f.add("txid", a.txid)
	}
	if a.page != nil {
		f.page(a.page)
	}
}

// longest is the length of the answer to a question.
func longest() *atomic.Int64 {
	var bytes atomic.Int64
	bytes.Store(longestAnswer(0))
	return &bytes
}

func decode(data string) (name string, f fields) {
	packets, err := readMessage(strings.NewReader(data), longest())
	if err != nil {
		return "fatal", nil
	}
	if strings.HasPrefix(packets[0], "refd ") {
		h, err := decodeHello(packets)
		if err != nil {
			return "fatal", nil
		}
		f.hello(h)
		return "hello", f
	}
	a, err := decodeAnswer(packets)
	if err != nil {
		return "fatal", nil
	}
	f.answer(a)
	return "answer", f
}

func failure(err error) (name string, f fields) {
	var rejected *RejectedError
	var partial *PartialError
	var unknown *UnknownError
	var unreachable *UnreachableError
	switch {
	case errors.As(err, &unknown):
		f.add("txid", unknown.Txid)
		f.results(unknown.Results)
		return "unknown", f
	case errors.As(err, &partial):
		f.results(partial.Report.Results)
		return "partial", f
	case errors.As(err, &rejected):
		f.add("status", string(rejected.Status))
		f.results(rejected.Results)
		return "rejected", f
	case isProtocol(err):
		return "protocol", nil
	case errors.As(err, &unreachable):
		return "unreachable", nil
	}
	panic(err)
}

// ---- commands ----

type runner struct {
	client *Client
	txn    *Transaction
	held   *Session
}

func (r *runner) run(command string, w words) (string, fields) {
	timeout := time.Minute
	if d := w.millis("timeout"); d != nil {
		timeout = *d
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	name, f, err := r.do(ctx, command, w)
	if err != nil {
		return failure(err)
	}
	return name, f
}

func (r *runner) do(ctx context.Context, command string, w words) (
	name string, f fields, err error) {
	var report *Report
	var page *Page
	switch command {
	case "decode":
		name, f = decode(w["bytes"])
		return name, f, nil
	case "encode":
		data, err := w.encode()
		f.add("bytes", string(data))
		return "bytes", f, err
	case "connect":
		if r.client, err = Dial(ctx, w["path"]); err == nil {
			f.add("state", r.client.Hello().State)
		}
		return "hello", f, err
	case "close":
		if r.client != nil {
			err = r.client.Close()
		}
		return "closed", nil, err
	case "ping":
		return "pong", nil, r.client.Ping(ctx)
	case "pairs":
		pairs, err := r.client.Pairs(ctx, w["verb"])
		if err == nil {
			f.add("first", pairs[0].Key)
		}
		return "pairs", f, err
	case "pack":
		pairs, err := r.client.Pack(ctx, w.repository())
		if err == nil {
			f.add("first", pairs[0].Key)
		}
		return "pairs", f, err
	case "look":
		pairs, err := r.client.Look(ctx, w.repository())
		if err == nil {
			f.add("first", pairs[0].Key)
		}
		return "pairs", f, err
	case "session", "session-again":
		if command == "session" {
			r.txn = w.transaction()
		}
		r.held, err = r.client.Session(ctx, r.txn)
		if err == nil {
			f.results(r.held.Results)
		}
		return "prepared", f, err
	case "log":
		page, err = r.client.Log(ctx, w.selection())
	case "watch":
		page, err = r.client.Watch(ctx, w.selection())
	case "transact":
		r.txn = w.transaction()
		report, err = r.client.Transact(ctx, r.txn)
	case "again":
		report, err = r.client.Transact(ctx, r.txn)
	case "commit":
		report, err = r.held.Commit(ctx)
	case "abort":
		report, err = r.held.Abort(ctx)
	case "query":
		report, err = r.client.Query(ctx, w["txid"])
	case "cancel":
		report, err = r.client.Cancel(ctx, w["txid"])
	}
	if err != nil {
		return "", nil, err
	}
	if page != nil {
		f.page(page)
		return "page", f, nil
	}
	f.report(report)
	return "report", f, nil
}

// ---- tests of Go alone ----

func TestStatusIsAnError(t *testing.T) {
	err := error(&RejectedError{Status: Stale})
	if !errors.Is(err, Stale) || errors.Is(err, Locked) {
		t.Error("errors.Is does not tell the status")
	}
	err = &UnknownError{Cause: context.Canceled}
	var rejected *RejectedError
	if errors.As(err, &rejected) || !errors.Is(err, context.Canceled) {
		t.Error("unknown is a failure, or hides its cause")
	}
}

// A counter counts calls of SetReadDeadline.
type counter struct {
	net.Conn
	calls atomic.Int32
}

func (c *counter) SetReadDeadline(time.Time) error {
	c.calls.Add(1)
	return nil
}

// The end of the context of Dial must not break the connection.
func TestDialContextEnds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c := &counter{}
	for i := 0; i < 1000; i++ {
		ctx, cancel := context.WithCancel(context.Background())
		release := limitReads(ctx, c)
		release()
		cancel()
		runtime.Gosched()
	}
	if n := c.calls.Load(); n > 0 {
		t.Errorf("%d of 1000 connections broke", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("0012answer 1 pairs000cpair k v0000"))
	f.Add([]byte("0012refd version=2000bstate x0000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		packets, err := readMessage(bytes.NewReader(data), longest())
		if err != nil || len(packets) == 0 {
			return
		}
		decodeHello(packets)
		decodeAnswer(packets)
	})
}

// A message may not be larger than the limit, whatever comes.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, "0005x"), nil
}

func TestMessageIsBounded(t *testing.T) {
	r := bufio.NewReaderSize(io.Reader(endless{}), 5)
	_, err := readMessage(r, longest())
	if !isProtocol(err) {
		t.Errorf("an endless message: %v", err)
	}
}
