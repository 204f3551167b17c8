package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Limits of what a server may announce; beyond them the stream is ErrProtocol.
const (
	MaxBulkBytes = 512 << 20 // Redis' own limit of a string
	MaxArrayLen  = 1 << 20

	// MaxPageBytes bounds what is kept of the names of one reply to SCAN.
	MaxPageBytes = 64 << 20

	bufferBytes = 16 << 10 // hence the longest header line
)

// ErrProtocol is a reply that is none, or not the one that was due. The stream
// is out of step behind it: the connection must be closed.
var ErrProtocol = errors.New("reply is no RESP2 within the limits")

// ErrNil is a null reply: there is no such key.
var ErrNil = errors.New("null reply")

// Error is an error reply. The stream goes on behind it.
type Error string

func (e Error) Error() string { return string(e) }

// RedisError marks it as a reply, as go-redis does its own.
func (Error) RedisError() {}

// Reader reads replies in the order in which they come. Its errors are ErrNil,
// an Error, ErrProtocol, or those of the connection.
type Reader struct {
	src    io.Reader
	buf    [bufferBytes]byte
	at, to int // unread bytes of buf
	hash   xxhash.Digest
	text   []byte // of the last Text
}

// NewReader reads from a connection.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Buffered tells whether bytes were received that nobody has read: behind the
// last reply of a pipeline there must be none.
func (r *Reader) Buffered() bool { return r.at < r.to }

// Int reads an integer reply.
func (r *Reader) Int() (int64, error) {
	kind, line, err := r.header()
	if err != nil {
		return 0, err
	}
	switch kind {
	case ':':
		return parseInt(line)
	case '$', '*':
		if n, err := parseInt(line); err != nil || n != -1 {
			break
		}
		return 0, ErrNil
	}
	return 0, unexpected(kind, "an integer")
}

// Status reads a simple string. It is valid until the next call.
func (r *Reader) Status() ([]byte, error) {
	kind, line, err := r.header()
	if err != nil {
		return nil, err
	}
	if kind != '+' {
		return nil, unexpected(kind, "a simple string")
	}
	return line, nil
}

// Text reads a bulk string and keeps its first keep bytes, valid until the next
// call.
func (r *Reader) Text(keep int) ([]byte, error) {
	kind, line, err := r.header()
	if err != nil {
		return nil, err
	}
	n, err := parseInt(line)
	switch {
	case kind != '$' && kind != '*':
		return nil, unexpected(kind, "a string")
	case err != nil:
		return nil, err
	case n == -1:
		return nil, ErrNil
	case kind != '$' || n < 0 || n > MaxBulkBytes:
		return nil, fmt.Errorf("%w: announces %c%d", ErrProtocol, kind, n)
	}
	r.text, err = r.take(r.text[:0], n, keep)
	return r.text, err
}

// Name is a key's name in a Page.
type Name struct {
	From, To int    // of Page.Arena: the name's first bytes
	Bytes    int64  // length of the whole name
	Hash     uint64 // xxHash of the whole name, of one that was cut; else 0
}

// Page is a reply to SCAN. Its buffers are reused.
type Page struct {
	Cursor uint64
	Names  []Name
	Arena  []byte
}

// Scan reads a reply to SCAN and keeps the first keep bytes of each name. What
// is longer is read past in pieces and only hashed.
func (r *Reader) Scan(p *Page, keep int) error {
	p.Names, p.Arena = p.Names[:0], p.Arena[:0]
	if n, err := r.array(); err != nil {
		return err
	} else if n != 2 {
		return fmt.Errorf("%w: SCAN replied with %d elements", ErrProtocol, n)
	}
	if err := r.cursor(p); err != nil {
		return err
	}
	n, err := r.array()
	if err != nil {
		return inside(err)
	}
	for range n {
		if err := r.name(p, keep); err != nil {
			return inside(err)
		}
	}
	return nil
}

func (r *Reader) cursor(p *Page) error {
	n, err := r.bulk()
	if err != nil {
		return inside(err)
	}
	if n > 20 { // digits of 2^64
		return fmt.Errorf("%w: a cursor of %d bytes", ErrProtocol, n)
	}
	if p.Arena, err = r.take(p.Arena, n, int(n)); err != nil {
		return err
	}
	p.Cursor, err = parseUint(p.Arena)
	p.Arena = p.Arena[:0]
	return err
}

func (r *Reader) name(p *Page, keep int) error {
	n, err := r.bulk()
	if err != nil {
		return err
	}
	name := Name{From: len(p.Arena), Bytes: n}
	if p.Arena, err = r.take(p.Arena, n, keep); err != nil {
		return err
	}
	if name.To = len(p.Arena); name.To > MaxPageBytes {
		return fmt.Errorf("%w: names of more than %d bytes", ErrProtocol, MaxPageBytes)
	}
	if n > int64(keep) {
		name.Hash = r.hash.Sum64()
	}
	p.Names = append(p.Names, name)
	return nil
}

// take reads n bytes and the line end behind them, and appends the first keep
// of them to dst. Where there are more, hash is that of all.
func (r *Reader) take(dst []byte, n int64, keep int) ([]byte, error) {
	long := n > int64(keep)
	if long {
		r.hash.Reset()
	}
	for left, room := n, keep; left > 0; {
		if err := r.fill(); err != nil {
			return dst, err
		}
		piece := r.buf[r.at:min(r.to, r.at+int(min(left, bufferBytes)))]
		if long {
			r.hash.Write(piece) //nolint:errcheck // never fails
		}
		kept := min(room, len(piece))
		dst = append(dst, piece[:kept]...)
		room -= kept
		left -= int64(len(piece))
		r.at += len(piece)
	}
	for _, want := range [...]byte{'\r', '\n'} {
		if err := r.fill(); err != nil {
			return dst, err
		}
		if r.buf[r.at] != want {
			return dst, fmt.Errorf("%w: a string is longer than announced", ErrProtocol)
		}
		r.at++
	}
	return dst, nil
}

// bulk reads the header of a bulk string.
func (r *Reader) bulk() (int64, error) { return r.length('$', MaxBulkBytes) }

// array reads the header of an array.
func (r *Reader) array() (int64, error) { return r.length('*', MaxArrayLen) }

func (r *Reader) length(want byte, limit int64) (int64, error) {
	kind, line, err := r.header()
	if err != nil {
		return 0, err
	}
	if kind != want {
		return 0, unexpected(kind, string(want))
	}
	n, err := parseInt(line)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > limit {
		return 0, fmt.Errorf("%w: announces %c%d", ErrProtocol, want, n)
	}
	return n, nil
}

// header reads a line. An error reply is returned as an Error.
func (r *Reader) header() (kind byte, line []byte, err error) {
	line, err = r.line()
	if err != nil {
		return 0, nil, err
	}
	if len(line) == 0 {
		return 0, nil, fmt.Errorf("%w: an empty line", ErrProtocol)
	}
	kind, line = line[0], line[1:]
	switch kind {
	case '-':
		return kind, nil, Error(line)
	case '+', ':', '$', '*':
		return kind, line, nil
	}
	return 0, nil, fmt.Errorf("%w: starts with %q", ErrProtocol, kind)
}

// line returns what precedes the next line end, valid until the next call.
func (r *Reader) line() ([]byte, error) {
	searched := 0
	for {
		unread := r.buf[r.at:r.to]
		if i := bytes.IndexByte(unread[searched:], '\n'); i >= 0 {
			end := searched + i
			r.at += end + 1
			if end == 0 || unread[end-1] != '\r' {
				return nil, fmt.Errorf("%w: a bare line feed", ErrProtocol)
			}
			return unread[:end-1], nil
		}
		searched = len(unread)
		if r.at > 0 {
			copy(r.buf[:], unread)
			r.at, r.to = 0, len(unread)
		}
		if r.to == bufferBytes {
			return nil, fmt.Errorf("%w: a line longer than %d bytes", ErrProtocol, bufferBytes)
		}
		if err := r.read(); err != nil {
			return nil, err
		}
	}
}

// fill makes sure that there is an unread byte.
func (r *Reader) fill() error {
	if r.at < r.to {
		return nil
	}
	r.at, r.to = 0, 0
	return r.read()
}

func (r *Reader) read() error {
	for range 100 { // as bufio does: a reader that gives nothing for ever
		n, err := r.src.Read(r.buf[r.to:])
		r.to += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// inside makes of a null or an error within a reply what it is: no reply.
func inside(err error) error {
	var reply Error
	if errors.As(err, &reply) {
		return fmt.Errorf("%w: an error within an array", ErrProtocol)
	}
	return err
}

func unexpected(kind byte, want string) error {
	return fmt.Errorf("%w: %q where %s was due", ErrProtocol, kind, want)
}

func parseInt(b []byte) (int64, error) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	n, err := parseUint(b)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%w: bad number", ErrProtocol)
	}
	if negative {
		return -int64(n), nil
	}
	return int64(n), nil
}

func parseUint(b []byte) (uint64, error) {
	if len(b) == 0 || len(b) > 20 {
		return 0, fmt.Errorf("%w: bad number", ErrProtocol)
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, fmt.Errorf("%w: bad number", ErrProtocol)
		}
		n = n*10 + d
	}
	return n, nil
}
