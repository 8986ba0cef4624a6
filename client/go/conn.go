package refd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A lostError says that there will be no answer on this connection, or not in
// time.
type lostError struct {
	cause  error
	sent   bool // the daemon may have the whole request
	over   bool // the context is done
	denied bool // the daemon denies this client
}

func (e *lostError) Error() string { return e.cause.Error() }

// An outgoing request.
type outgoing struct {
	data   []byte
	unsent atomic.Bool // the daemon cannot have the whole request
}

// A conn is a connection with a goroutine that reads, and one that writes.
// done is closed when the connection has ended; err and refusal tell why.
type conn struct {
	net   net.Conn
	hello *Hello
	queue chan *outgoing
	slots chan struct{} // a token for each request in flight
	done  chan struct{}
	// The bytes of the longest answer to the requests in flight.
	longest atomic.Int64

	mu      sync.Mutex
	waiting map[uint32]chan *answer // a nil channel: nobody waits
	lastID  uint32
	err     error
	refusal *answer
}

// limitReads ends the reads of a connection with the context, until the
// function that it returns has returned.
func limitReads(ctx context.Context, nc net.Conn) func() {
	greeted, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-ctx.Done():
			nc.SetReadDeadline(time.Unix(1, 0))
		case <-greeted:
		}
	}()
	return func() {
		close(greeted)
		<-over
	}
}

func dial(ctx context.Context, path string) (*conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	release := limitReads(ctx, nc)
	r := bufio.NewReaderSize(nc, 1<<16)
	c := &conn{net: nc, queue: make(chan *outgoing),
		slots: make(chan struct{}, requestsMax),
		done:  make(chan struct{}), waiting: map[uint32]chan *answer{}}
	c.longest.Store(helloBytesMax)
	packets, err := readMessage(r, &c.longest)
	release()
	if err == nil {
		c.hello, err = decodeHello(packets)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	go c.read(r)
	go c.write()
	return c, nil
}

func (c *conn) isOpen() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// close ends the connection. The first cause counts.
func (c *conn) close(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = cause
		close(c.done)
	}
	c.net.Close()
}

func (c *conn) read(r *bufio.Reader) {
	c.net.SetReadDeadline(time.Time{})
	for {
		packets, err := readMessage(r, &c.longest)
		if err != nil {
			c.close(err)
			return
		}
		a, err := decodeAnswer(packets)
		if err == nil {
			err = c.take(a)
		}
		if err != nil {
			c.close(err)
			return
		}
	}
}

func (c *conn) take(a *answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.id == 0 {
		c.refusal = a
		return nil
	}
	ready, is := c.waiting[a.id]
	if !is {
		return malformed("an answer that nobody asked for")
	}
	delete(c.waiting, a.id)
	<-c.slots
	if ready != nil {
		ready <- a
	}
	return nil
}

// write sends the queue. A server that has hung up may have sent the reason
// before: the reader still reads.
func (c *conn) write() {
	isDeaf := false
	for {
		select {
		case <-c.done:
			return
		case out := <-c.queue:
			if !isDeaf {
				_, err := c.net.Write(out.data)
				isDeaf = err != nil
			}
			out.unsent.Store(isDeaf)
		}
	}
}

// lost describes the end of the connection.
func (c *conn) lost(sent bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusal == nil {
		return &lostError{cause: c.err, sent: sent}
	}
	denied := c.refusal.status == Denied
	return &lostError{cause: fmt.Errorf("%s: %s", c.refusal.status,
		c.refusal.text), sent: sent && !denied, denied: denied}
}

func (c *conn) register(ready chan *answer, updates int) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := longestAnswer(updates)
	if len(c.waiting) == 0 || most > c.longest.Load() {
		c.longest.Store(most)
	}
	c.lastID++
	if c.lastID == 0 {
		c.lastID = 1
	}
	c.waiting[c.lastID] = ready
	return c.lastID
}

// forget leaves a request whose answer nobody needs. If the request was not
// sent, no answer will come.
func (c *conn) forget(id uint32, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, is := c.waiting[id]; !is {
		return
	}
	if sent {
		c.waiting[id] = nil
		return
	}
	delete(c.waiting, id)
	<-c.slots
}

// ask sends a request and waits for the answer, which has results for at most
// updates.
func (c *conn) ask(ctx context.Context, updates int,
	encode func(id uint32) ([]byte, error)) (*answer, error) {
	select {
	case c.slots <- struct{}{}:
	case <-c.done:
		return nil, c.lost(false)
	case <-ctx.Done():
		return nil, &lostError{cause: ctx.Err(), over: true}
	}
	ready := make(chan *answer, 1)
	id := c.register(ready, updates)
	data, err := encode(id)
	if err != nil {
		c.forget(id, false)
		return nil, err
	}
	out := &outgoing{data: data}
	select {
	case c.queue <- out:
	case <-c.done:
		return nil, c.lost(false)
	case <-ctx.Done():
		c.forget(id, false)
		return nil, &lostError{cause: ctx.Err(), over: true}
	}
	select {
	case a := <-ready:
		return a, nil
	case <-ctx.Done():
		c.forget(id, true)
		return nil, &lostError{cause: ctx.Err(), sent: true, over: true}
	case <-c.done:
	}
	select { // the answer may have come just before the end
	case a := <-ready:
		return a, nil
	default:
		return nil, c.lost(!out.unsent.Load())
	}
}

// post sends a request whose answer nobody needs.
func (c *conn) post(updates int, encode func(id uint32) ([]byte, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	go func() {
		defer cancel()
		c.ask(ctx, updates, encode)
	}()
}

var errClosed = errors.New("the client was closed")
