package policy

import (
	"unicode"
	"unicode/utf8"

	"redis_keyhealth_exporter/internal/keyspace"
)

// NameSpecialChar finds white space, quotes, backslashes, control characters
// and bytes that are not UTF-8: what breaks shells, logs and clients.
type NameSpecialChar struct{}

// Check looks at each character. Of an oversized name it sees what is kept.
func (NameSpecialChar) Check(k *keyspace.Key) Severity {
	for i := 0; i < len(k.Name); {
		c := k.Name[i]
		if c < utf8.RuneSelf {
			if c <= ' ' || c == '\'' || c == '"' || c == '\\' || c == 0x7f {
				return Warning
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(k.Name[i:])
		if r == utf8.RuneError && size == 1 {
			if k.Oversized() && !utf8.FullRuneInString(k.Name[i:]) {
				return Healthy // cut inside a character by us
			}
			return Warning
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return Warning
		}
		i += size
	}
	return Healthy
}
