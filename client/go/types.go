package refd

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// NewTxid makes a transaction id: the time, and 80 random bits.
func NewTxid() string {
	var random [10]byte
	if _, err := rand.Read(random[:]); err != nil {
		panic(err) // the kernel has no random numbers
	}
	return fmt.Sprintf("%012x%s", time.Now().UnixMilli(),
		hex.EncodeToString(random[:]))
}

// Repository is a repository as the daemon needs it. Use OpenRepository.
type Repository struct {
	GitDir               string
	CommonDev, CommonIno uint64
	// "sha1" or "sha256". Empty: the length of the ids of a transaction
	// tells.
	ObjectFormat string
}

// OpenRepository looks at a git-dir: a bare repository, the .git of a work
// tree, or a directory in .git/worktrees.
func OpenRepository(gitDir string) (*Repository, error) {
	dir, err := filepath.Abs(gitDir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	common := dir
	name, err := os.ReadFile(filepath.Join(dir, "commondir"))
	if err == nil {
		common = strings.TrimRight(string(name), "\n")
		if !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
	} else if !errors.Is(err, fs.ErrNotExist) &&
		!errors.Is(err, syscall.ENOTDIR) {
		return nil, err
	}
	var at syscall.Stat_t
	if err := syscall.Stat(common, &at); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: common, Err: err}
	}
	return &Repository{GitDir: dir, CommonDev: uint64(at.Dev),
		CommonIno: uint64(at.Ino)}, nil
}

// processUmask reads the umask of this process without changing it.
func processUmask() (uint32, error) {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if value := strings.TrimPrefix(lines.Text(), "Umask:"); value !=
			lines.Text() {
			value = strings.TrimSpace(value)
			n, err := strconv.ParseUint(value, 8, 32)
			return uint32(n), err
		}
	}
	return 0, errors.New("/proc/self/status has no umask")
}

// Update is one command of git update-ref --stdin. Empty fields are not given.
type Update struct {
	Command           string // update, create, ..., symref-verify
	Ref               string
	Oid, OldOid       string
	Target, OldTarget string
	NoDeref           bool
}

// Transaction is a list of updates of refs in one repository, and the options
// of the request; PROTOCOL.md, "Headers", explains them. The same
// *Transaction, passed to Transact again, is the same transaction: it is done
// at most once. Do not change a Transaction after the first call.
type Transaction struct {
	Repository *Repository
	Updates    []Update
	// NewTransaction makes the id, and so does the first call if the id is
	// empty. Resume takes the id of an earlier transaction.
	Txid       string
	Atomic     bool
	Message    *string // nil: none
	Committer  string
	Durability string
	Level      string
	// The time in which the daemon must begin the commit. 0: three quarters
	// of the time of the call.
	Deadline          time.Duration
	CreateReflog      bool
	Push              bool
	Umask             *uint32 // nil: of this process
	LogAllRefUpdates  string
	SharedRepository  string
	RefLockTimeout    *time.Duration
	PackedRefsTimeout *time.Duration
	Trace2Sid         string
	Identity          map[string]string

	once      sync.Once
	maybeSent atomic.Bool // the daemon may have this transaction
}

// NewTransaction makes an empty transaction with a new id.
func NewTransaction(repo *Repository) *Transaction {
	t := &Transaction{Repository: repo, Txid: NewTxid()}
	t.once.Do(func() {})
	return t
}

// Resume makes an empty transaction with the id of an earlier transaction,
// perhaps of an earlier process. The updates must be the same.
func Resume(repo *Repository, txid string) *Transaction {
	return &Transaction{Repository: repo, Txid: txid}
}

// identifyOnce makes the id. An id that the caller gave may have been sent.
func (t *Transaction) identifyOnce() {
	t.once.Do(func() {
		if t.Txid == "" {
			t.Txid = NewTxid()
		} else {
			t.maybeSent.Store(true)
		}
	})
}

// Add adds an update with any fields.
func (t *Transaction) Add(u Update) *Transaction {
	t.Updates = append(t.Updates, u)
	return t
}

// Update sets a ref. If old is not empty, the ref must have this value; the
// null id says that the ref must not exist.
func (t *Transaction) Update(ref, oid, old string) *Transaction {
	return t.Add(Update{Command: "update", Ref: ref, Oid: oid, OldOid: old})
}

// Create makes a ref, which must not exist.
func (t *Transaction) Create(ref, oid string) *Transaction {
	return t.Add(Update{Command: "create", Ref: ref, Oid: oid})
}

// Delete deletes a ref. If old is not empty, the ref must have this value.
func (t *Transaction) Delete(ref, old string) *Transaction {
	return t.Add(Update{Command: "delete", Ref: ref, OldOid: old})
}

// Verify changes nothing. If old is empty, the ref must not exist.
func (t *Transaction) Verify(ref, old string) *Transaction {
	return t.Add(Update{Command: "verify", Ref: ref, OldOid: old})
}

// Result is the fate of one ref.
type Result struct {
	Ref    string
	Status Status
	Found  string   // the value that the daemon found, or empty
	Text   string   // for people; empty: the usual text of the status
	Detail []string // PROTOCOL.md, "Details"
}

func (r Result) String() string {
	why := r.Text
	if why == "" {
		why = sentence(r.Detail)
	}
	if why == "" {
		why = string(r.Status)
	}
	return r.Ref + ": " + why
}

// Report is what the daemon says about a transaction.
type Report struct {
	Txid    string
	Outcome Outcome
	Results []Result
	Updates int
	Token   string // "<log id>:<lsn>", or empty
}

// Hello is the first message of the daemon.
type Hello struct {
	Version              uint32
	Software             string
	State                string // recovering, serving, draining
	HorizonMs, Pid       uint64
	MaxUpdates, MaxBytes uint32
	HasProgress          bool
	Done, Total          uint64
	Capabilities         []string
}

// Position is a place in history: a record, or a change of a record.
type Position struct {
	Lsn    uint64
	Number uint32
}

// Selection selects the changes that Log and Watch return: PROTOCOL.md,
// "History". Zero values select everything.
type Selection struct {
	Repository       *Repository
	Refs             []string
	Txid             string
	Uid              *uint32
	User             string
	SinceMs, UntilMs uint64
	Journal          string
	After, Before    *Position
	Limit            uint32
	Reverse          bool
	All              bool
	Origin           bool          // the records have their origin
	Wait             time.Duration // the longest wait of Watch
}

// Behind returns the selection that continues behind a page.
func (s Selection) Behind(p *Page) Selection {
	next := p.Next
	s.Journal = p.Journal
	if s.Reverse {
		s.Before = &next
	} else {
		s.After = &next
	}
	return s
}

// Origin tells who wrote the refs of a record.
type Origin string

// The daemon wrote the refs; or git, which told the daemon; or another writer:
// the daemon found the change later, and values in between may be missing.
const (
	OriginDaemon Origin = ""
	OriginGate   Origin = "gate"
	OriginSeen   Origin = "seen"
)

// Record holds decisions for one transaction.
type Record struct {
	Lsn, TimeMs        uint64
	Uid                uint32
	Pid                uint64
	Txid, Path         string
	Voids              uint64 // 0: none
	Origin             Origin // "" also if the selection has no Origin
	Committer, Message string
	Identity           map[string]string
	Changes            []Change
}

// Change is the fate of one ref in a record.
type Change struct {
	Number   uint32
	Status   Status
	Ref      string
	Old, New string // empty: not known
	Target   string
	Text     string
	Detail   []string
}

// Page is a part of history.
type Page struct {
	Journal string
	Records []Record
	Next    Position
	More    bool
	Gap     *uint64 // changes up to this LSN are not known any more
}

// Pair is one line of Pairs.
type Pair struct{ Key, Value string }
