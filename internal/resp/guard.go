package resp

import (
	"fmt"
	"net"
	"strconv"
)

// Limits of replies that only the client library reads. It allocates what a
// length header says before a byte of it has come, panics on absurd ones and
// recurses into nested arrays without end: a rogue or garbled peer must not end
// the process.
const (
	maxGuardedBytes = 16 << 20 // a string: INFO of 16,384 databases is below 1 MiB
	maxReplyBytes   = 2 * maxGuardedBytes
	maxLineBytes    = 64 << 10
	maxDepth        = 8

	headerDigits = 24 // of a length that can be within the limits
)

// Guard closes a connection on the first byte read from it that is no RESP2 or
// beyond the limits; the reader gets ErrProtocol.
func Guard(conn net.Conn) net.Conn { return &guardedConn{Conn: conn} }

// guardedConn watches the reply headers that pass through it.
type guardedConn struct {
	net.Conn
	guard guard
}

// Read hands on what is checked, and closes the connection on the first byte
// that is not.
func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bad := c.guard.check(p[:n]); bad != nil {
		c.Conn.Close()
		return 0, bad
	}
	return n, err
}

// guard follows the structure of RESP2 without keeping any of it.
type guard struct {
	skip    int64 // bytes left of a bulk string and its line end
	inLine  bool
	kind    byte
	line    int // bytes of the line so far
	digits  [headerDigits]byte
	pending [maxDepth]int64 // elements left, per open array
	depth   int
	reply   int64 // bytes of the top-level reply so far
}

func (g *guard) check(b []byte) error {
	for len(b) > 0 {
		var n int64
		var err error
		switch {
		case g.skip > 0:
			n = min(g.skip, int64(len(b)))
			if g.skip -= n; g.skip == 0 {
				g.element()
			}
		case !g.inLine:
			n, err = 1, g.start(b[0])
		default:
			n, err = 1, g.inside(b[0])
		}
		if err != nil {
			return err
		}
		if g.reply += n; g.reply > maxReplyBytes {
			return fmt.Errorf("%w: longer than %d bytes", ErrProtocol, int64(maxReplyBytes))
		}
		if g.depth == 0 && g.skip == 0 && !g.inLine {
			g.reply = 0
		}
		b = b[n:]
	}
	return nil
}

// start takes a reply's first byte.
func (g *guard) start(c byte) error {
	switch c {
	case '+', '-', ':', '$', '*':
		g.inLine, g.kind, g.line = true, c, 0
		return nil
	}
	return fmt.Errorf("%w: starts with %q", ErrProtocol, c)
}

// inside takes a byte of a header line.
func (g *guard) inside(c byte) error {
	if c != '\n' {
		if g.line < headerDigits {
			g.digits[g.line] = c
		}
		if g.line++; g.line > maxLineBytes {
			return fmt.Errorf("%w: a line longer than %d bytes", ErrProtocol, maxLineBytes)
		}
		return nil
	}
	g.inLine = false
	if g.kind != '$' && g.kind != '*' {
		g.element()
		return nil
	}
	if g.line < 2 || g.line > headerDigits || g.digits[g.line-1] != '\r' {
		return fmt.Errorf("%w: bad length", ErrProtocol)
	}
	n, err := strconv.ParseInt(string(g.digits[:g.line-1]), 10, 64)
	limit := int64(maxGuardedBytes)
	if g.kind == '*' {
		limit = MaxArrayLen
	}
	switch {
	case err != nil || n < -1:
		return fmt.Errorf("%w: bad length", ErrProtocol)
	case n > limit:
		return fmt.Errorf("%w: announces %c%d", ErrProtocol, g.kind, n)
	case g.kind == '$' && n >= 0:
		g.skip = n + 2
	case g.kind == '*' && n > 0:
		if g.depth == maxDepth {
			return fmt.Errorf("%w: nested deeper than %d", ErrProtocol, maxDepth)
		}
		g.pending[g.depth] = n
		g.depth++
	default:
		g.element()
	}
	return nil
}

// element ends an element, and each array that it was the last of.
func (g *guard) element() {
	for g.depth > 0 {
		if g.pending[g.depth-1]--; g.pending[g.depth-1] > 0 {
			return
		}
		g.depth--
	}
}
