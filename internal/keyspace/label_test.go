package keyspace

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLabel(t *testing.T) {
	for _, tc := range []struct{ name, want string }{
		{"user:1", "user:1"},
		{"", `\e`},
		{`\e`, `\\e`},
		{`a\b`, `a\\b`},
		{"a b", "a b"},
		{"a\nb", `a\x0ab`},
		{"a\x00b", `a\x00b`},
		{`say "hi" it's`, `say "hi" it's`},
		{"user:\xff\xfe", `user:\xff\xfe`},
		{"订单:1", "订单:1"},
		{"a\u202eb", `a\xe2\x80\xaeb`},   // bidi override
		{"a\u200bb", `a\xe2\x80\x8bb`},   // zero width
		{"a\u00a0b", `a\xc2\xa0b`},       // no-break space
		{"a\u2028b", `a\xe2\x80\xa8b`},   // line separator
		{"\ufffd", "\ufffd"},             // a replacement character is a character
		{"\xef\xbf", `\xef\xbf`},         // half of one is not
		{"\xed\xa0\x80", `\xed\xa0\x80`}, // surrogate
		{strings.Repeat("a", MaxLabelBytes), strings.Repeat("a", MaxLabelBytes)},
	} {
		if got := Label(tc.name); got != tc.want {
			t.Errorf("Label(%q) = %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestLabelCut(t *testing.T) {
	digits := strings.Repeat("0a", cutHashHex/2)
	for _, tc := range []struct {
		about, name, start string
	}{
		{"one byte too long", strings.Repeat("a", MaxLabelBytes+1), strings.Repeat("a", 167) + "#"},
		{"never inside an escape", "aa" + strings.Repeat("\x01", 60), "aa" + strings.Repeat(`\x01`, 41) + "#"},
		{"never inside a doubled backslash", strings.Repeat(`\`, 150), strings.Repeat(`\\`, 83) + "#"},
		{"never inside a character", strings.Repeat("单", 80), strings.Repeat("单", 55) + "#"},
		{"a name that looks cut", "a#" + digits, "a#" + digits + "#"},
	} {
		got := Label(tc.name)
		if !strings.HasPrefix(got, tc.start) || len(got) != len(tc.start)+cutHashHex || !looksCut(got) {
			t.Errorf("%s: Label(%q) = %q, want %q and %d hex digits", tc.about, tc.name, got, tc.start, cutHashHex)
		}
	}
	if a, b := strings.Repeat("x", 300)+"1", strings.Repeat("x", 300)+"2"; Label(a) == Label(b) {
		t.Errorf("two long names share the label %q", Label(a))
	}
}

func TestOversizedLabel(t *testing.T) {
	key := Key{Name: strings.Repeat("n", MaxNameBytes), NameBytes: MaxNameBytes + 1, Hash: 1}
	other := key
	other.Hash = 2
	if a, b := key.Label(), other.Label(); a == b || len(a) > MaxLabelBytes || !looksCut(a) {
		t.Errorf("labels of two oversized names: %q and %q", a, b)
	}
}

// FuzzLabel holds the contract of label values for any bytes: each uncut label
// can be read back to its name, hence no two names share one.
func FuzzLabel(f *testing.F) {
	for _, seed := range []string{
		"", "user:1", `a\e`, "a\xffb", "\xfe", "a\nb\"c'd", "订单\u202e", strings.Repeat("ü", 150),
		"a#" + strings.Repeat("0", cutHashHex), strings.Repeat("\x00", 60),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		label := Label(name)
		if label == "" || len(label) > MaxLabelBytes || !utf8.ValidString(label) {
			t.Fatalf("Label(%q) = %q: %d bytes", name, label, len(label))
		}
		for _, r := range label {
			if r != ' ' && !unicode.IsPrint(r) {
				t.Fatalf("Label(%q) = %q holds %U raw", name, label, r)
			}
		}
		if back, cut := unlabel(t, label); !cut && back != name {
			t.Fatalf("Label(%q) = %q reads back as %q", name, label, back)
		}
	})
}

// unlabel is the inverse of Label for what was not cut.
func unlabel(t *testing.T, label string) (name string, cut bool) {
	if label == EmptyLabel {
		return "", false
	}
	if looksCut(label) {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(label); i++ {
		if label[i] != '\\' {
			b.WriteByte(label[i])
			continue
		}
		switch i++; label[i] {
		case '\\':
			b.WriteByte('\\')
		case 'x':
			c, err := strconv.ParseUint(label[i+1:i+3], 16, 8)
			if err != nil {
				t.Fatalf("bad escape in %q: %v", label, err)
			}
			b.WriteByte(byte(c))
			i += 2
		default:
			t.Fatalf("unknown escape in %q", label)
		}
	}
	return b.String(), false
}

func BenchmarkLabel(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Label("order:invoice:20261121:000042")
	}
}
