package refd

import (
	"strconv"
	"strings"
)

// An answer of any kind; the fields of other kinds are empty.
type answer struct {
	kind           string
	id             uint32
	txid           string
	report         *Report  // results, pending, never-seen, expired
	results        []Result // prepared
	rewritesPacked bool     // prepared
	status         Status   // refused
	text           string   // refused
	retryAfterMs   uint64   // refused
	pairs          []Pair
	page           *Page // records
}

// A parser keeps the first error: the callers check it once.
type parser struct{ err error }

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = malformed("malformed %s", what)
	}
}

func (p *parser) number(s string, least, most uint64) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < least || n > most ||
		strconv.FormatUint(n, 10) != s {
		p.fail("number")
	}
	return n
}

const (
	maxU32 = 1<<32 - 1
	maxU64 = 1<<64 - 1
)

func (p *parser) hex(s string, length int) string {
	if !isHex(s, length) {
		p.fail("id")
	}
	return s
}

func (p *parser) text(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		p.fail("text")
	}
	return s
}

func (p *parser) status(s string) Status {
	if !Status(s).isKnown() {
		p.fail("status")
	}
	return Status(s)
}

// oid reads an id, or nothing. All ids of a message have one length.
func (p *parser) oid(s string, length *int) string {
	if s == "" {
		return s
	}
	if *length == 0 && len(s) == 64 {
		*length = 64
	} else if *length == 0 {
		*length = 40
	}
	return p.hex(s, *length)
}

// A line gives its value if it begins with the key and a space.
func valueOf(line, key string) (string, bool) {
	if !strings.HasPrefix(line, key+" ") {
		return "", false
	}
	return line[len(key)+1:], true
}

// named reads "<name>=<number>" fields.
func (p *parser) named(s string, most uint64, names ...string) []uint64 {
	fields := strings.Split(s, " ")
	numbers := make([]uint64, len(names))
	if len(fields) != len(names) {
		p.fail("hello")
		return numbers
	}
	for i, name := range names {
		key, value, _ := strings.Cut(fields[i], "=")
		if key != name {
			p.fail("hello")
		}
		numbers[i] = p.number(value, 0, most)
	}
	return numbers
}

func decodeHello(packets []string) (*Hello, error) {
	var p parser
	if len(packets) == 0 ||
		!strings.HasPrefix(packets[0], "refd version=") {
		return nil, malformed("not a refd")
	}
	h := &Hello{}
	h.Version = uint32(p.number(packets[0][13:], 1, maxU32))
	if p.err == nil && h.Version != protocolVersion {
		return nil, malformed("the daemon speaks version %d of refd's "+
			"protocol, this program version %d", h.Version,
			protocolVersion)
	}
	seen := map[string]bool{}
	for _, line := range packets[1:] {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "software", "state", "horizon", "pid", "limit", "progress":
			if seen[key] {
				p.fail("hello")
			}
			seen[key] = true
			p.helloLine(h, key, value)
		case "capability":
			h.Capabilities = append(h.Capabilities, value)
		}
	}
	for _, key := range []string{"software", "state", "horizon", "pid",
		"limit"} {
		if !seen[key] {
			p.fail("hello")
		}
	}
	return h, p.err
}

func (p *parser) helloLine(h *Hello, key, value string) {
	switch key {
	case "software":
		h.Software = p.text(value)
		if len(value) > 63 {
			p.fail("hello")
		}
	case "state":
		h.State = value
		if value != "recovering" && value != "serving" &&
			value != "draining" {
			p.fail("hello")
		}
	case "horizon":
		h.HorizonMs = p.number(value, 0, maxU64)
	case "pid":
		h.Pid = p.number(value, 0, maxU64)
	case "limit":
		limits := p.named(value, maxU32, "updates", "bytes")
		h.MaxUpdates, h.MaxBytes = uint32(limits[0]), uint32(limits[1])
	case "progress":
		progress := p.named(value, maxU64, "done", "total")
		h.HasProgress, h.Done, h.Total = true, progress[0], progress[1]
	}
}

// words reads the text, or the detail, behind the other fields.
func (p *parser) words(fields []string) (string, []string) {
	if len(fields) == 1 {
		if strings.HasPrefix(fields[0], "\x01") {
			p.fail("text")
		}
		return fields[0], nil
	}
	if fields[0] != "" || fields[1] == "" ||
		strings.Contains(strings.Join(fields, ""), "\x01") {
		p.fail("detail")
	}
	return "", fields[1:]
}

func (p *parser) result(line string, length *int) Result {
	fields := strings.Split(line, "\x00")
	if len(fields) < 4 {
		p.fail("result")
		return Result{}
	}
	r := Result{Ref: fields[1], Status: OK, Found: p.oid(fields[2], length)}
	if fields[0] != "ok" {
		code, is := valueOf(fields[0], "ng")
		r.Status = p.status(code)
		if !is || r.Status == OK {
			p.fail("result")
		}
	}
	r.Text, r.Detail = p.words(fields[3:])
	return r
}

func (p *parser) results(lines []string) []Result {
	if len(lines) > updatesMax {
		p.fail("number of results")
		return nil
	}
	length := 0
	results := make([]Result, len(lines))
	for i, line := range lines {
		results[i] = p.result(line, &length)
	}
	return results
}

func (p *parser) report(txid string, body []string) *Report {
	r := &Report{Txid: txid}
	if len(body) == 0 {
		p.fail("outcome")
		return r
	}
	last := len(body) - 1
	value, is := valueOf(body[last], "outcome")
	fields := strings.Split(value, " ")
	if !is || len(fields) < 2 || len(fields) > 3 {
		p.fail("outcome")
		return r
	}
	r.Outcome = Outcome(fields[0])
	switch r.Outcome {
	case Committed, Partial, Rejected, Unknown:
	default:
		p.fail("outcome")
	}
	r.Results = p.results(body[:last])
	r.Updates = int(p.number(fields[1], uint64(last), updatesMax))
	if len(fields) == 3 {
		log, lsn, _ := strings.Cut(fields[2], ":")
		p.hex(log, 32)
		p.number(lsn, 1, maxU64)
		r.Token = fields[2]
	}
	return r
}

// Lines of a body, to be taken by their keys.
type lines struct{ rest []string }

func (l *lines) take(key string) (string, bool) {
	if len(l.rest) == 0 {
		return "", false
	}
	value, is := valueOf(l.rest[0], key)
	if is {
		l.rest = l.rest[1:]
	}
	return value, is
}

func (p *parser) refused(a *answer, body []string) {
	l := lines{body}
	if txid, is := l.take("txid"); is {
		a.txid = p.hex(txid, 32)
		if strings.Trim(txid, "0") == "" {
			p.fail("txid")
		}
	}
	status, is := l.take("status")
	a.status = p.status(status)
	if !is || a.status == OK {
		p.fail("refusal")
	}
	text, _ := l.take("text")
	a.text = p.text(text)
	if retry, is := l.take("retry-after"); is {
		a.retryAfterMs = p.number(retry, 1, deadlineMaxMs)
		if a.status != Busy {
			p.fail("refusal")
		}
	}
	if len(l.rest) > 0 {
		p.fail("refusal")
	}
}

func (p *parser) pair(line string) Pair {
	rest, is := valueOf(line, "pair")
	key, value, has := strings.Cut(rest, " ")
	if !is || !has || key == "" {
		p.fail("pair")
	}
	return Pair{p.text(key), p.text(value)}
}

func (p *parser) change(value string, length *int) Change {
	fields := strings.Split(value, "\x00")
	if len(fields) < 6 {
		p.fail("change")
		return Change{}
	}
	number, code, _ := strings.Cut(fields[0], " ")
	c := Change{Number: uint32(p.number(number, 1, maxU32)),
		Status: p.status(code), Ref: fields[1],
		Old: p.oid(fields[2], length), New: p.oid(fields[3], length),
		Target: fields[4]}
	c.Text, c.Detail = p.words(fields[5:])
	return c
}

func (p *parser) recordHead(value string) Record {
	f := strings.SplitN(value, " ", 6)
	if len(f) != 6 {
		p.fail("record")
		return Record{}
	}
	return Record{Lsn: p.number(f[0], 1, maxU64),
		TimeMs: p.number(f[1], 0, maxU64),
		Uid:    uint32(p.number(f[2], 0, maxU32)),
		Pid:    p.number(f[3], 0, maxU64),
		Txid:   p.hex(f[4], 32), Path: p.text(f[5])}
}

func (p *parser) record(l *lines, value string) Record {
	r := p.recordHead(value)
	if voids, is := l.take("voids"); is {
		r.Voids = p.number(voids, 1, maxU64)
	}
	if origin, is := l.take("origin"); is {
		r.Origin = Origin(origin)
		if r.Origin != OriginGate && r.Origin != OriginSeen {
			p.fail("origin")
		}
	}
	for _, field := range []struct {
		key string
		to  *string
	}{{"committer", &r.Committer}, {"message", &r.Message}} {
		if text, is := l.take(field.key); is {
			*field.to = p.text(text)
			if text == "" {
				p.fail("record")
			}
		}
	}
	last := ""
	for {
		identity, is := l.take("identity")
		if !is {
			break
		}
		name, value, _ := strings.Cut(identity, "=")
		if !isIdentityName(name) || name <= last || value == "" ||
			len(value) > nameMax || len(r.Identity) == 8 {
			p.fail("identity")
		}
		if r.Identity == nil {
			r.Identity = map[string]string{}
		}
		last = name
		r.Identity[name] = p.text(value)
	}
	length := 0
	for {
		change, is := l.take("change")
		if !is {
			break
		}
		r.Changes = append(r.Changes, p.change(change, &length))
	}
	if len(r.Changes) == 0 {
		p.fail("record")
	}
	return r
}

func (p *parser) page(body []string) *Page {
	l := lines{body}
	page := &Page{}
	journal, _ := l.take("journal")
	page.Journal = p.hex(journal, 32)
	if gap, is := l.take("gap"); is {
		lsn := p.number(gap, 0, maxU64)
		page.Gap = &lsn
	}
	changes := 0
	for p.err == nil {
		record, is := l.take("record")
		if !is {
			break
		}
		page.Records = append(page.Records, p.record(&l, record))
		changes += len(page.Records[len(page.Records)-1].Changes)
	}
	if changes > changesMax {
		p.fail("number of changes")
	}
	next, _ := l.take("next")
	lsn, number, has := strings.Cut(next, " ")
	page.Next.Lsn = p.number(lsn, 0, maxU64)
	if has {
		page.Next.Number = uint32(p.number(number, 1, maxU32))
	}
	if len(l.rest) == 1 && l.rest[0] == "more" {
		page.More = true
	} else if len(l.rest) > 0 {
		p.fail("page")
	}
	return page
}

func decodeAnswer(packets []string) (*answer, error) {
	var p parser
	if len(packets) == 0 {
		return nil, malformed("an empty answer")
	}
	head := strings.Split(packets[0], " ")
	body := packets[1:]
	if len(head) != 3 || head[0] != "answer" {
		return nil, malformed("not an answer: %.40q", packets[0])
	}
	a := &answer{kind: head[2]}
	least := uint64(1)
	if a.kind == "refused" {
		least = 0
	}
	a.id = uint32(p.number(head[1], least, maxU32))
	switch a.kind {
	case "results", "prepared", "pending", "never-seen", "expired":
		if len(body) == 0 {
			return nil, malformed("an answer without a txid")
		}
		txid, _ := valueOf(body[0], "txid")
		a.txid = p.hex(txid, 32)
		p.about(a, body[1:])
	case "refused":
		p.refused(a, body)
	case "pong":
		if len(body) > 0 {
			p.fail("pong")
		}
	case "pairs":
		for _, line := range body {
			a.pairs = append(a.pairs, p.pair(line))
		}
	case "records":
		a.page = p.page(body)
	default:
		p.fail("kind")
	}
	return a, p.err
}

// about reads the body of an answer about a transaction.
func (p *parser) about(a *answer, body []string) {
	switch a.kind {
	case "results":
		a.report = p.report(a.txid, body)
	case "prepared":
		last := len(body) - 1
		if last >= 0 && body[last] == "rewrites-packed" {
			a.rewritesPacked = true
			body = body[:last]
		}
		a.results = p.results(body)
	default:
		a.report = &Report{Txid: a.txid, Outcome: Outcome(a.kind)}
		if len(body) > 0 {
			p.fail("answer")
		}
	}
}
