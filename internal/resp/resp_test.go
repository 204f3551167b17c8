package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"
)

func TestWriter(t *testing.T) {
	var w Writer
	w.Command("PING")
	w.Reset()
	w.Key(NewKeyCommand([]string{"MEMORY", "USAGE"}), "a\r\nb")
	w.Command("TYPE", "")
	if want := "*3\r\n$6\r\nMEMORY\r\n$5\r\nUSAGE\r\n$4\r\na\r\nb\r\n*2\r\n$4\r\nTYPE\r\n$0\r\n\r\n"; string(w.Bytes()) != want || w.Len() != 2 {
		t.Errorf("%q, %d commands", w.Bytes(), w.Len())
	}
	w.Reset()
	w.Key(NewKeyCommand([]string{"GETRANGE"}, "0", "0"), "a")
	if want := "*4\r\n$8\r\nGETRANGE\r\n$1\r\na\r\n$1\r\n0\r\n$1\r\n0\r\n"; string(w.Bytes()) != want || w.Len() != 1 {
		t.Errorf("%q, %d commands", w.Bytes(), w.Len())
	}
}

// readers hand out the stream whole and byte by byte.
func readers(stream string) []*Reader {
	return []*Reader{
		NewReader(strings.NewReader(stream)),
		NewReader(iotest.OneByteReader(strings.NewReader(stream))),
	}
}

func TestInt(t *testing.T) {
	for _, tc := range []struct {
		stream string
		want   int64
		err    error
	}{
		{":0\r\n", 0, nil},
		{":-2\r\n", -2, nil},
		{":9223372036854775807\r\n", 9223372036854775807, nil},
		{":9223372036854775808\r\n", 0, ErrProtocol},
		{":99999999999999999999999\r\n", 0, ErrProtocol},
		{":\r\n", 0, ErrProtocol},
		{":1x\r\n", 0, ErrProtocol},
		{":1\n", 0, ErrProtocol},
		{"$-1\r\n", 0, ErrNil},
		{"*-1\r\n", 0, ErrNil},
		{"$1\r\n", 0, ErrProtocol},
		{"+OK\r\n", 0, ErrProtocol},
		{"-NOPERM no\r\n", 0, Error("NOPERM no")},
		{"-\r\n", 0, Error("")},
		{"%1\r\n", 0, ErrProtocol},
		{"\r\n", 0, ErrProtocol},
		{"HTTP/1.1 200 OK\r\n", 0, ErrProtocol},
		{"", 0, io.EOF},
		{":1", 0, io.EOF},
		{":" + strings.Repeat("1", bufferBytes+1), 0, ErrProtocol},
	} {
		for _, r := range readers(tc.stream) {
			if got, err := r.Int(); got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%.40q: %d, %v; want %d, %v", tc.stream, got, err, tc.want, tc.err)
			}
		}
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		stream, want string
		err          error
	}{
		{"$3\r\nint\r\n", "int", nil},
		{"$0\r\n\r\n", "", nil},
		{"$6\r\nembstr\r\n", "embs", nil}, // cut
		{"$-1\r\n", "", ErrNil},
		{"*-1\r\n", "", ErrNil},
		{"*1\r\n", "", ErrProtocol},
		{"$-2\r\n", "", ErrProtocol},
		{"$536870913\r\n", "", ErrProtocol},
		{"$3\r\nin\r\n\r\n", "in\r", ErrProtocol},
		{"+int\r\n", "", ErrProtocol},
		{"-ERR no\r\n", "", Error("ERR no")},
	} {
		for _, r := range readers(tc.stream + ":7\r\n") {
			got, err := r.Text(4)
			if !errors.Is(err, tc.err) || string(got) != tc.want {
				t.Errorf("%q: %q, %v", tc.stream, got, err)
			}
			if n, err := r.Int(); tc.err != ErrProtocol && (n != 7 || err != nil) {
				t.Errorf("%q: what comes behind is %d, %v", tc.stream, n, err)
			}
		}
	}
}

func TestStatus(t *testing.T) {
	for _, r := range readers("+string\r\n-WRONGTYPE x\r\n+hash\r\n:1\r\n") {
		if s, err := r.Status(); string(s) != "string" || err != nil {
			t.Errorf("%q, %v", s, err)
		}
		if _, err := r.Status(); err != Error("WRONGTYPE x") {
			t.Errorf("%v", err)
		}
		if s, err := r.Status(); string(s) != "hash" || err != nil {
			t.Errorf("behind an error reply: %q, %v", s, err)
		}
		if _, err := r.Status(); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v", err)
		}
	}
}

// scanReply is a reply as Redis makes it.
func scanReply(cursor string, names ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*2\r\n$%d\r\n%s\r\n*%d\r\n", len(cursor), cursor, len(names))
	for _, n := range names {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(n), n)
	}
	return b.String()
}

func TestScan(t *testing.T) {
	const keep = 10
	names := []string{"user:1", "", "a\r\nb", "exactly10!", "eleven byte", strings.Repeat("long", 20_000), "\xff\x00"}
	stream := scanReply("18446744073709551615", names...) + scanReply("0") + ":7\r\n"
	for _, r := range readers(stream) {
		var p Page
		if err := r.Scan(&p, keep); err != nil {
			t.Fatal(err)
		}
		if p.Cursor != 18446744073709551615 || len(p.Names) != len(names) {
			t.Fatalf("cursor %d, %d names", p.Cursor, len(p.Names))
		}
		for i, n := range p.Names {
			want := names[i]
			if got := string(p.Arena[n.From:n.To]); got != want[:min(keep, len(want))] || n.Bytes != int64(len(want)) || (n.Hash != 0) != (len(want) > keep) || n.Hash != 0 && n.Hash != xxhash.Sum64String(want) {
				t.Errorf("name %d: %q, %+v", i, got, n)
			}
		}
		if err := r.Scan(&p, keep); err != nil || p.Cursor != 0 || len(p.Names) != 0 {
			t.Errorf("an empty page: %v, %+v", err, p)
		}
		if n, err := r.Int(); n != 7 || err != nil || r.Buffered() {
			t.Errorf("behind it: %d, %v, %v", n, err, r.Buffered())
		}
	}
}

func TestScanRefuses(t *testing.T) {
	for _, tc := range []struct {
		stream string
		want   error
	}{
		{"-NOPERM no\r\n", Error("NOPERM no")},
		{"*-1\r\n", ErrProtocol},
		{"*3\r\n", ErrProtocol},
		{"*2\r\n*0\r\n*0\r\n", ErrProtocol},
		{"*2\r\n$-1\r\n*0\r\n", ErrProtocol},
		{"*2\r\n$1\r\nx\r\n*0\r\n", ErrProtocol},
		{"*2\r\n$0\r\n\r\n*0\r\n", ErrProtocol},
		{"*2\r\n$21\r\n" + strings.Repeat("1", 21) + "\r\n*0\r\n", ErrProtocol},
		{"*2\r\n$1\r\n0\r\n$1\r\nx\r\n", ErrProtocol},
		{"*2\r\n$1\r\n0\r\n-ERR x\r\n", ErrProtocol},
		{"*2\r\n$1\r\n0\r\n*1\r\n:5\r\n", ErrProtocol},
		{"*2\r\n$1\r\n0\r\n*1\r\n$3\r\nabcd\r\n", ErrProtocol},
		{"*2\r\n$1\r\n0\r\n*1\r\n$536870913\r\n", ErrProtocol},
		{"*2\r\n$1\r\n0\r\n*1048577\r\n", ErrProtocol},
		{"*2\r\n$1\r\n0\r\n*1\r\n$536870912\r\nab", io.EOF},
	} {
		for _, r := range readers(tc.stream) {
			var p Page
			if err := r.Scan(&p, 10); !errors.Is(err, tc.want) {
				t.Errorf("%.40q: %v, want %v", tc.stream, err, tc.want)
			}
		}
	}
}

// TestFloodOfNames: a reply of names that are each within the limit is bounded.
func TestFloodOfNames(t *testing.T) {
	const size = 16 << 10
	name := fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("n", size))
	for n, want := range map[int]error{MaxPageBytes / size: nil, MaxPageBytes/size + 1: ErrProtocol} {
		pieces := []io.Reader{strings.NewReader(fmt.Sprintf("*2\r\n$1\r\n0\r\n*%d\r\n", n))}
		for range n {
			pieces = append(pieces, strings.NewReader(name))
		}
		var p Page
		if err := NewReader(io.MultiReader(pieces...)).Scan(&p, size); !errors.Is(err, want) {
			t.Errorf("%d names: %v, want %v", n, err, want)
		}
	}
}

// TestLongNameTakesNoMemory: a name of 200 MB is read past.
func TestLongNameTakesNoMemory(t *testing.T) {
	const size = 200 << 20
	stream := io.MultiReader(
		strings.NewReader(fmt.Sprintf("*2\r\n$1\r\n0\r\n*1\r\n$%d\r\n", size)),
		io.LimitReader(repeat('n'), size),
		strings.NewReader("\r\n"),
	)
	r := NewReader(stream)
	var p Page
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := r.Scan(&p, 16<<10); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 256<<10 {
		t.Errorf("%d KiB were allocated", grew>>10)
	}
	if n := p.Names[0]; n.Bytes != size || n.To-n.From != 16<<10 {
		t.Errorf("%+v", n)
	}
}

type repeat byte

func (c repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}

func TestNoAllocations(t *testing.T) {
	page := []byte(pageStream(100))
	src := bytes.NewReader(page)
	r := NewReader(src)
	var p Page
	var w Writer
	memory, typ := NewKeyCommand([]string{"MEMORY", "USAGE"}), NewKeyCommand([]string{"TYPE"})
	read := func() {
		src.Reset(page)
		w.Reset()
		for range 100 {
			w.Key(memory, "order:invoice:123456")
			w.Key(typ, "order:invoice:123456")
			if _, err := r.Int(); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Status(); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Text(32); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Scan(&p, 1<<14); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations for a page", n)
	}
}

func pageStream(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("order:invoice:%06d", i)
	}
	return strings.Repeat(":104\r\n+string\r\n$6\r\nembstr\r\n", n) + scanReply("4711", names...)
}

func BenchmarkPage(b *testing.B) {
	page := []byte(pageStream(100))
	src := bytes.NewReader(page)
	r := NewReader(src)
	var p Page
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(page)
		for range 100 {
			_, _ = r.Int()
			_, _ = r.Status()
			_, _ = r.Text(32)
		}
		_ = r.Scan(&p, 1<<14)
	}
}

// FuzzReader: any bytes, whole or one by one, give the same and never a panic.
func FuzzReader(f *testing.F) {
	f.Add([]byte(":1\r\n+string\r\n" + scanReply("5", "a", "bb")))
	f.Add([]byte("$-1\r\n-ERR x\r\n" + scanReply("0")))
	f.Add([]byte("*2\r\n$1\r\n0\r\n*1\r\n$9999999999\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		type result struct {
			n      int64
			status string
			page   Page
			errs   [3]string
		}
		run := func(r *Reader) (res result) {
			var err [3]error
			res.n, err[0] = r.Int()
			var s []byte
			s, err[1] = r.Status()
			res.status = string(s)
			err[2] = r.Scan(&res.page, 8)
			for i := range err {
				res.errs[i] = fmt.Sprint(err[i])
			}
			return res
		}
		whole := run(NewReader(bytes.NewReader(stream)))
		pieces := run(NewReader(iotest.OneByteReader(bytes.NewReader(stream))))
		if fmt.Sprint(whole) != fmt.Sprint(pieces) {
			t.Fatalf("whole: %+v\npieces: %+v", whole, pieces)
		}
		for _, n := range whole.page.Names {
			if n.From > n.To || n.To > len(whole.page.Arena) || n.To-n.From > 8 {
				t.Fatalf("%+v of %d bytes", n, len(whole.page.Arena))
			}
		}
	})
}
