package keyspace

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxLabelBytes bounds an encoded name: a longer label value than
	// Prometheus' label_value_length_limit drops the whole scrape.
	MaxLabelBytes = 200

	// EmptyLabel marks the empty name, which Redis allows and which Prometheus
	// cannot tell from an absent label. No other name encodes to it, as a
	// backslash in a name is always doubled.
	EmptyLabel = `\e`

	cutHashHex = 32 // hex digits of the SHA-256 prefix behind a cut name
)

// Label encodes the name for people and label values: valid UTF-8, at most
// MaxLabelBytes, no raw control, format (bidi) or separator character, and
// injective, so that two keys never share one series.
//
// A printable name is its own label. `\` becomes `\\`; a byte that is not
// UTF-8 and each byte of an unprintable character become `\xHH`; the empty name
// is EmptyLabel. What is longer than MaxLabelBytes is cut and ends in `#` and 32
// hex digits of the SHA-256 of the name, and so is a name that looks as if it
// had been cut. The label shares no memory with the name, which may be a piece
// of a whole page of names.
func (k *Key) Label() string {
	if k.Oversized() {
		// The whole name is not kept: its length and hash stand in for the rest.
		return cutLabel(encode(k.Name, MaxLabelBytes), sha256.Sum256(oversizedIdentity(k)))
	}
	return Label(k.Name)
}

// Label is Key.Label for a name that is held whole.
func Label(name string) string {
	if name == "" {
		return EmptyLabel
	}
	if plain(name) && len(name) <= MaxLabelBytes && !looksCut(name) {
		return strings.Clone(name)
	}
	// One byte more than allowed tells that there is more.
	label := encode(name, MaxLabelBytes+1)
	if len(label) <= MaxLabelBytes && !looksCut(label) {
		return label
	}
	return cutLabel(label, sha256.Sum256([]byte(name)))
}

func oversizedIdentity(k *Key) []byte {
	id := make([]byte, 0, len(k.Name)+16)
	id = append(id, k.Name...)
	for shift := 0; shift < 64; shift += 8 {
		id = append(id, byte(k.Hash>>shift), byte(k.NameBytes>>shift))
	}
	return id
}

// encode escapes name and stops after about limit bytes, at the end of an
// escape or character.
func encode(name string, limit int) string {
	var b strings.Builder
	b.Grow(min(len(name), limit) + utf8.UTFMax*4)
	for i := 0; i < len(name) && b.Len() < limit; {
		r, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && size == 1, !visible(r):
			for _, c := range []byte(name[i : i+size]) {
				b.WriteString(`\x`)
				b.WriteByte(hexDigits[c>>4])
				b.WriteByte(hexDigits[c&15])
			}
		default:
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}

const hexDigits = "0123456789abcdef"

// plain is the fast way out for what nearly every name is: printable ASCII.
func plain(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// visible tells whether r shows as itself: unicode.IsPrint leaves out control,
// format (bidi overrides, zero width) and private characters and every space
// but U+0020.
func visible(r rune) bool { return r == ' ' || unicode.IsPrint(r) }

// cutLabel shortens an encoded name, never inside an escape or character, and
// appends the hash that keeps it unique.
func cutLabel(label string, sum [sha256.Size]byte) string {
	keep := min(len(label), MaxLabelBytes-cutHashHex-1)
	for i := 0; i < keep; {
		n := tokenLen(label[i:])
		if i+n > keep {
			keep = i
			break
		}
		i += n
	}
	return label[:keep] + "#" + hex.EncodeToString(sum[:cutHashHex/2])
}

// tokenLen is the length of the escape or character that label starts with.
func tokenLen(label string) int {
	if label[0] == '\\' {
		if label[1] == 'x' {
			return 4
		}
		return 2
	}
	_, size := utf8.DecodeRuneInString(label)
	return size
}

// looksCut tells whether a label could be mistaken for one of cutLabel's.
func looksCut(label string) bool {
	tail := len(label) - cutHashHex - 1
	return tail >= 0 && label[tail] == '#' && isHex(label[tail+1:])
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
