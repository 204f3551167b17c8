package policy

import "strings"

// hashTag finds the braces of the part of a name that Redis Cluster hashes: the
// first `{` and the first `}` behind it, with something in between. Without a
// tag both are -1.
func hashTag(name string) (open, closing int) {
	open = strings.IndexByte(name, '{')
	if open < 0 {
		return -1, -1
	}
	n := strings.IndexByte(name[open+1:], '}')
	if n <= 0 {
		return -1, -1
	}
	return open, open + 1 + n
}

func isSeparator(c byte) bool { return c == ':' || c == '#' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isIDLike tells whether a segment names one thing among many: a number, uuid,
// hexadecimal id, date, e-mail or IP address.
func isIDLike(segment string) bool {
	return isNumber(segment) || isHexID(segment) || isUUID(segment) ||
		isDate(segment) || isIPv4(segment) || isEmail(segment)
}

// isNumber matches an optional sign, digits and an optional fraction.
func isNumber(s string) bool {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	whole := digits(s)
	switch rest := s[whole:]; {
	case whole == 0:
		return false
	case rest == "":
		return true
	default:
		return rest[0] == '.' && len(rest) > 1 && digits(rest[1:]) == len(rest)-1
	}
}

// isHexID matches at least 8 hexadecimal digits, one of them 0-9: "deadbeef"
// and "facade" are words.
func isHexID(s string) bool {
	decimal := false
	for i := 0; i < len(s); i++ {
		if !isHexDigit(s[i]) {
			return false
		}
		decimal = decimal || isDigit(s[i])
	}
	return decimal && len(s) >= 8
}

// isUUID matches 8-4-4-4-12 hexadecimal digits.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHexDigit(s[i]) {
				return false
			}
		}
	}
	return true
}

// isDate matches year-month, year-month-day and day-month-year with `-` or `.`
// between, and an ISO 8601 time behind a `T`.
func isDate(s string) bool {
	first := digits(s)
	if first == len(s) || s[first] != '-' && s[first] != '.' {
		return false
	}
	sep, rest := s[first], s[first+1:]
	second := digits(rest)
	if second != 2 || first != 4 && first != 2 {
		return false
	}
	if rest = rest[second:]; rest == "" {
		return first == 4
	}
	if rest[0] != sep {
		return false
	}
	rest = rest[1:]
	third := digits(rest)
	if third+first != 6 { // 4+2 or 2+4 digits
		return false
	}
	rest = rest[third:]
	return rest == "" || rest[0] == 'T' && strings.Trim(rest[1:], "0123456789.+-Z") == ""
}

// isIPv4 matches four numbers of at most three digits.
func isIPv4(s string) bool {
	for part := 0; ; part++ {
		n := digits(s)
		if n == 0 || n > 3 {
			return false
		}
		if s = s[n:]; s == "" {
			return part == 3
		}
		if s[0] != '.' {
			return false
		}
		s = s[1:]
	}
}

// isEmail matches local@domain.
func isEmail(s string) bool {
	at := strings.IndexByte(s, '@')
	if at <= 0 || at == len(s)-1 {
		return false
	}
	for i := at + 1; i < len(s); i++ {
		if c := s[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// digits counts the decimal digits that s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
