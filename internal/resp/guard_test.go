package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	array := func(n int, element string) string { return fmt.Sprintf("*%d\r\n", n) + strings.Repeat(element, n) }
	for _, tc := range []struct {
		about, stream string
		ok            bool
	}{
		{"simple replies", "+OK\r\n-ERR no\r\n:42\r\n", true},
		{"bulk", "$5\r\nhello\r\n$0\r\n\r\n$-1\r\n", true},
		{"a bulk that looks like headers", "$14\r\n*99999999999\r\n\r\n+OK\r\n", true},
		{"arrays", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*0\r\n*-1\r\n+OK\r\n", true},
		{"the largest bulk", "$16777216\r\n", true},
		{"a larger one", "$16777217\r\n", false},
		{"an absurd bulk", "$9223372036854775807\r\n", false},
		{"no number at all", "$99999999999999999999999\r\n", false},
		{"the longest array", "*1048576\r\n", true},
		{"a longer one", "*1048577\r\n", false},
		{"an absurd array", "*9223372036854775807\r\n", false},
		{"a negative length", "$-2\r\n", false},
		{"an empty length", "$\r\n", false},
		{"a bare line feed", "$5\n", false},
		{"a length that is a word", "*two\r\n", false},
		{"nested as deep as allowed", strings.Repeat("*1\r\n", maxDepth) + ":1\r\n", true},
		{"nested deeper", strings.Repeat("*1\r\n", maxDepth+1), false},
		{"depth counts what is open", strings.Repeat("*1\r\n:1\r\n", 100), true},
		{"arrays in a row within an array", array(100, "*1\r\n:1\r\n") + "+OK\r\n", true},
		{"the longest line", "+" + strings.Repeat("x", maxLineBytes-1) + "\r\n", true},
		{"a longer one", "+" + strings.Repeat("x", maxLineBytes+1), false},
		{"RESP3", "%1\r\n+a\r\n+b\r\n", false},
		{"a web server", "HTTP/1.1 400 Bad Request\r\n", false},
		{"TLS", "\x15\x03\x01\x00\x02\x02\x46", false},
	} {
		for _, size := range []int{1, 3, len(tc.stream)} {
			if err := feed(&guard{}, []byte(tc.stream), size); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrProtocol) {
				t.Errorf("%s in pieces of %d: err = %v", tc.about, size, err)
			}
		}
	}
}

// TestGuardReplySize: a reply of many parts within their limits is bounded, too,
// and the next reply starts at 0.
func TestGuardReplySize(t *testing.T) {
	g := &guard{}
	bulk := fmt.Sprintf("$%d\r\n", 10<<20)
	body := make([]byte, 1<<20)
	sendBulk := func() error {
		if err := g.check([]byte(bulk)); err != nil {
			return err
		}
		for range 10 {
			if err := g.check(body); err != nil {
				return err
			}
		}
		return g.check([]byte("\r\n"))
	}
	for range 5 {
		if err := sendBulk(); err != nil {
			t.Fatalf("replies of their own: %v", err)
		}
	}
	if err := g.check([]byte("*4\r\n")); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := sendBulk(); (err != nil) != (i == 3) {
			t.Errorf("bulk %d of one reply: %v", i, err)
		}
	}
}

func feed(g *guard, stream []byte, size int) error {
	for len(stream) > 0 {
		n := min(size, len(stream))
		if err := g.check(stream[:n]); err != nil {
			return err
		}
		stream = stream[n:]
	}
	return nil
}

// FuzzGuard: any bytes in any pieces get the same answer, and what follows a
// complete and valid reply is judged by itself.
func FuzzGuard(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\n0\r\n*1\r\n$3\r\nabc\r\n"), 2)
	f.Add([]byte("$-1\r\n:1\r\n+x\r\n-y\r\n"), 1)
	f.Add([]byte("*1048577\r\n"), 5)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		size = max(1, min(size, 64))
		var pieces, whole guard
		got, want := feed(&pieces, stream, size), feed(&whole, stream, max(1, len(stream)))
		if (got == nil) != (want == nil) {
			t.Fatalf("in pieces of %d: %v, at once: %v", size, got, want)
		}
		if want == nil && pieces != whole {
			t.Fatalf("in pieces of %d: %+v, at once: %+v", size, pieces, whole)
		}
		if want == nil && whole.depth == 0 && whole.skip == 0 && !whole.inLine && whole.reply != 0 {
			t.Fatalf("a reply's size is carried over: %+v", whole)
		}
	})
}

func BenchmarkGuard(b *testing.B) {
	page := bytes.Repeat([]byte("$20\r\norder:invoice:123456\r\n:104\r\n+string\r\n:-1\r\n"), 100)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		g := guard{}
		_ = g.check(page)
	}
}
