package refd

import (
	"bytes"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The limits of the protocol (proto/limits.h).
const (
	protocolVersion = 2
	payloadMax      = 65516
	requestsMax     = 256
	updatesMax      = 100000
	changesMax      = 1000
	requestBytesMax = 64 << 20
	nameMax         = 1024
	textMax         = 8192
	deadlineMaxMs   = 3600000
	// The bytes of a message of the server.
	helloBytesMax     = 64 << 10
	answerBytes       = 8 << 20
	resultBytes       = 10 << 10
	answerBytesMax    = 256 << 20
	messagePacketsMax = 2 * updatesMax
)

// longestAnswer returns the bytes of an answer with results for updates.
func longestAnswer(updates int) int64 {
	if most := int64(updates)*resultBytes + answerBytes; most <
		answerBytesMax {
		return most
	}
	return answerBytesMax
}

func malformed(format string, args ...any) error {
	return &ProtocolError{Text: fmt.Sprintf(format, args...)}
}

// readMessage returns the payloads up to a flush. A message with more bytes
// than longest is malformed.
func readMessage(r io.Reader, longest *atomic.Int64) ([]string, error) {
	var packets []string
	var digits [4]byte
	total := int64(0)
	for {
		if _, err := io.ReadFull(r, digits[:]); err != nil {
			return nil, err
		}
		length, err := strconv.ParseUint(string(digits[:]), 16, 16)
		if err != nil || length > payloadMax+4 ||
			(length > 0 && length <= 4) {
			return nil, malformed("not a packet: %q", digits[:])
		}
		if length == 0 {
			return packets, nil
		}
		total += int64(length)
		if total > longest.Load() ||
			len(packets) == messagePacketsMax {
			return nil, malformed("the message is too large")
		}
		payload := make([]byte, length-4)
		if _, err := io.ReadFull(r, payload); err != nil {
			return nil, err
		}
		packets = append(packets, string(payload))
	}
}

// ---- requests ----

// A writer keeps the first error.
type writer struct {
	buf   bytes.Buffer
	bytes int
	err   error
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = &RejectedError{Status: BadRequest,
			Text: fmt.Sprintf(format, args...)}
	}
}

func (w *writer) put(payload string) {
	w.bytes += len(payload)
	if w.bytes > requestBytesMax {
		w.fail("the request has more than 64 MiB")
	}
	if len(payload) == 0 || len(payload) > payloadMax {
		w.fail("a packet cannot have %d bytes", len(payload))
	}
	if w.err == nil {
		fmt.Fprintf(&w.buf, "%04x%s", len(payload)+4, payload)
	}
}

func (w *writer) end() ([]byte, error) {
	w.buf.WriteString("0000")
	return w.buf.Bytes(), w.err
}

func (w *writer) text(value string, most int) string {
	if strings.IndexByte(value, 0) >= 0 {
		w.fail("a NUL in %q", value)
	}
	if len(value) > most {
		w.fail("%d bytes where %d are the limit", len(value), most)
	}
	return value
}

func isHex(s string, length int) bool {
	if len(s) != length {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !(s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f') {
			return false
		}
	}
	return true
}

func (w *writer) hex(value string, length int) string {
	if !isHex(value, length) {
		w.fail("%q is not an id of %d digits", value, length)
	}
	return value
}

func (w *writer) header(key, value string) { w.put(key + " " + value) }

func (w *writer) some(key, value string, most int) {
	if value != "" {
		w.header(key, w.text(value, most))
	}
}

func (w *writer) flag(key string, set bool) {
	if set {
		w.put(key)
	}
}

func (w *writer) millis(key string, d time.Duration, least int64) {
	ms := d.Milliseconds()
	if ms < least || ms > deadlineMaxMs {
		w.fail("%s: %v is not between %d ms and an hour", key, d, least)
	}
	w.header(key, strconv.FormatInt(ms, 10))
}

func encodeSimple(verb string, id uint32, txid string) ([]byte, error) {
	var w writer
	w.put(fmt.Sprintf("%s %d", verb, id))
	switch verb {
	case "commit", "abort", "cancel", "query":
		w.header("txid", w.hex(txid, 32))
	}
	return w.end()
}

func (w *writer) gitDir(repo *Repository) {
	if !strings.HasPrefix(repo.GitDir, "/") {
		w.fail("git-dir %q is not absolute", repo.GitDir)
	}
	w.header("git-dir", w.text(repo.GitDir, 4095))
}

func (w *writer) commonDir(repo *Repository) {
	w.header("common-dir", fmt.Sprintf("%d %d", repo.CommonDev,
		repo.CommonIno))
}

// encodeForRepository encodes a pack or look request.
func encodeForRepository(verb string, id uint32, repo *Repository) ([]byte,
	error) {
	var w writer
	w.put(fmt.Sprintf("%s %d", verb, id))
	w.gitDir(repo)
	w.commonDir(repo)
	return w.end()
}

func isIdentityName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(c >= 'A' && c <= 'Z' || c == '_' ||
			(i > 0 && c >= '0' && c <= '9')) {
			return false
		}
	}
	return len(name) > 0 && len(name) <= 64
}

func (w *writer) identity(identity map[string]string) {
	names := make([]string, 0, len(identity))
	for name := range identity {
		names = append(names, name)
	}
	sort.Strings(names)
	if len(names) > 8 {
		w.fail("more than 8 identity variables")
	}
	for _, name := range names {
		if !isIdentityName(name) || identity[name] == "" {
			w.fail("bad identity variable %q", name)
		}
		w.header("identity", name+"="+w.text(identity[name], nameMax))
	}
}

func formatOf(t *Transaction) string {
	if t.Repository.ObjectFormat != "" {
		return t.Repository.ObjectFormat
	}
	for _, u := range t.Updates {
		for _, oid := range []string{u.Oid, u.OldOid} {
			if len(oid) == 64 {
				return "sha256"
			} else if oid != "" {
				return "sha1"
			}
		}
	}
	return "sha1"
}

func (w *writer) update(u Update, length int) {
	old := func() string {
		if u.OldOid == "" {
			return ""
		}
		return w.hex(u.OldOid, length)
	}
	name := func(s string) string { return w.text(s, nameMax) }
	w.flag("option no-deref", u.NoDeref)
	fields := []string{u.Command + " " + name(u.Ref)}
	switch u.Command {
	case "update":
		fields = append(fields, w.hex(u.Oid, length), old())
	case "create":
		fields = append(fields, w.hex(u.Oid, length))
	case "delete", "verify":
		fields = append(fields, old())
	case "symref-update":
		fields = append(fields, name(u.Target))
		if u.OldTarget != "" {
			fields = append(fields, "ref", name(u.OldTarget))
		} else if u.OldOid != "" {
			fields = append(fields, "oid", old())
		}
	case "symref-create":
		fields = append(fields, name(u.Target))
	case "symref-delete", "symref-verify":
		fields = append(fields, name(u.OldTarget))
	default:
		w.fail("unknown command %q", u.Command)
	}
	w.put(strings.Join(fields, "\x00"))
}

// encodeTransaction encodes a transaction or a session. A deadline of 0 is not
// sent.
func encodeTransaction(verb string, id uint32, t *Transaction,
	deadline time.Duration) ([]byte, error) {
	var w writer
	if len(t.Updates) > updatesMax {
		w.fail("more than %d updates", updatesMax)
	}
	umask := t.Umask
	if umask == nil {
		own, err := processUmask()
		if err != nil {
			w.fail("%v", err)
		}
		umask = &own
	}
	format := formatOf(t)
	w.put(fmt.Sprintf("%s %d", verb, id))
	w.header("txid", w.hex(t.Txid, 32))
	w.gitDir(t.Repository)
	w.commonDir(t.Repository)
	w.header("object-format", w.text(format, nameMax))
	w.flag("atomic", t.Atomic)
	w.flag("create-reflog", t.CreateReflog)
	w.flag("push", t.Push)
	w.some("durability", t.Durability, nameMax)
	w.some("level", t.Level, nameMax)
	if deadline != 0 {
		w.millis("deadline", deadline, 1)
	}
	if *umask > 0777 {
		w.fail("umask %o", *umask)
	}
	w.header("umask", fmt.Sprintf("%04o", *umask))
	if t.Message != nil {
		w.header("message", w.text(*t.Message, textMax))
	}
	w.some("committer", t.Committer, nameMax)
	w.some("log-all-ref-updates", t.LogAllRefUpdates, nameMax)
	w.some("shared-repository", t.SharedRepository, nameMax)
	if t.RefLockTimeout != nil {
		w.millis("ref-lock-timeout", *t.RefLockTimeout, 0)
	}
	if t.PackedRefsTimeout != nil {
		w.millis("packed-refs-timeout", *t.PackedRefsTimeout, 0)
	}
	w.some("trace2-sid", t.Trace2Sid, nameMax)
	w.identity(t.Identity)
	w.buf.WriteString("0001")
	length := 40
	if format == "sha256" {
		length = 64
	}
	for _, u := range t.Updates {
		w.update(u, length)
	}
	return w.end()
}

func (w *writer) position(key string, p *Position) {
	if p == nil {
		return
	}
	value := strconv.FormatUint(p.Lsn, 10)
	if p.Number != 0 {
		value += fmt.Sprintf(" %d", p.Number)
	}
	w.header(key, value)
}

func (w *writer) number(key string, n uint64) {
	if n != 0 {
		w.header(key, strconv.FormatUint(n, 10))
	}
}

// encodeHistory encodes a log or a watch.
func encodeHistory(verb string, id uint32, s *Selection) ([]byte, error) {
	var w writer
	w.put(fmt.Sprintf("%s %d", verb, id))
	if s.Txid != "" {
		w.header("txid", w.hex(s.Txid, 32))
	}
	if s.Repository != nil {
		w.gitDir(s.Repository)
		if s.Repository.CommonIno != 0 {
			w.commonDir(s.Repository)
		}
	}
	if s.Wait != 0 {
		w.millis("deadline", s.Wait, 1)
	}
	if len(s.Refs) > 16 {
		w.fail("more than 16 patterns of refs")
	}
	for _, pattern := range s.Refs {
		w.header("ref", w.text(pattern, nameMax))
	}
	if s.Uid != nil {
		w.header("uid", strconv.FormatUint(uint64(*s.Uid), 10))
	}
	w.some("user", s.User, nameMax)
	w.number("since", s.SinceMs)
	w.number("until", s.UntilMs)
	if s.Journal != "" {
		w.header("journal", w.hex(s.Journal, 32))
	}
	w.position("after", s.After)
	w.position("before", s.Before)
	if s.Limit > changesMax {
		w.fail("a limit of %d", s.Limit)
	}
	w.number("limit", uint64(s.Limit))
	w.flag("reverse", s.Reverse)
	w.flag("all", s.All)
	w.flag("origin", s.Origin)
	return w.end()
}
