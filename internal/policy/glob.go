package policy

import (
	"errors"
)

// glob is the part of a pattern behind its literal prefix. It matches as the
// patterns of Redis do, byte by byte.
type glob []globToken

// globToken matches one byte, or any number of them.
type globToken struct {
	star bool
	set  *[256]bool // the bytes that it matches
}

var errRange = errors.New(`a range in [...] goes from a lower byte to a higher one; write \- for a dash, \] for a bracket`)

// parseGlob splits a pattern into its literal prefix and the rest. What Redis
// takes in silence is refused: a class that is not closed or is empty, a
// backslash at the end.
func parseGlob(pattern string) (prefix string, rest glob, err error) {
	literal := []byte{}
	for i := 0; i < len(pattern); i++ {
		c, token := pattern[i], globToken{}
		switch c {
		case '*':
			token.star = true
			if n := len(rest); n > 0 && rest[n-1].star {
				continue
			}
		case '?':
			token.set = setOf(func(byte) bool { return true })
		case '[':
			end, set, err := parseClass(pattern, i+1)
			if err != nil {
				return "", nil, err
			}
			i, token.set = end, set
		default:
			if c == '\\' {
				if i++; i == len(pattern) {
					return "", nil, errors.New(`it ends in a backslash; write \\ for one`)
				}
				c = pattern[i]
			}
			if len(rest) == 0 {
				literal = append(literal, c)
				continue
			}
			token.set = setOf(func(b byte) bool { return b == c })
		}
		rest = append(rest, token)
	}
	return string(literal), rest, nil
}

// parseClass reads what stands between brackets, up to the closing one.
func parseClass(pattern string, i int) (end int, set *[256]bool, err error) {
	negated := i < len(pattern) && pattern[i] == '^'
	if negated {
		i++
	}
	var in [256]bool
	for first := i; ; i++ {
		switch {
		case i >= len(pattern):
			return 0, nil, errors.New("a [ is not closed; write \\[ for a bracket")
		case pattern[i] == ']' && i == first:
			return 0, nil, errors.New("[] and [^] are empty; write \\[ for a bracket")
		case pattern[i] == ']':
			return i, setOf(func(b byte) bool { return in[b] != negated }), nil
		case pattern[i] == '\\':
			if i++; i == len(pattern) {
				continue // not closed
			}
			in[pattern[i]] = true
		case i+1 < len(pattern) && pattern[i+1] == '-':
			if i+2 >= len(pattern) || pattern[i+2] == ']' || pattern[i+2] == '\\' || pattern[i] > pattern[i+2] {
				return 0, nil, errRange
			}
			for b := int(pattern[i]); b <= int(pattern[i+2]); b++ {
				in[b] = true
			}
			i += 2
		default:
			in[pattern[i]] = true
		}
	}
}

func setOf(holds func(byte) bool) *[256]bool {
	var set [256]bool
	for b := range set {
		set[b] = holds(byte(b))
	}
	return &set
}

// match tells whether the glob matches all of s. It goes back to the last star
// only, so that it takes at most len(g) × len(s) steps.
func (g glob) match(s string) bool {
	if len(g) == 1 && g[0].star {
		return true
	}
	g0, s0 := -1, 0 // behind the last star, and what it has taken up to
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(g) && g[i].star:
			i++
			if i == len(g) {
				return true
			}
			g0, s0 = i, j
		case i < len(g) && g[i].set[s[j]]:
			i, j = i+1, j+1
		case g0 >= 0:
			s0++
			i, j = g0, s0
		default:
			return false
		}
	}
	for i < len(g) && g[i].star {
		i++
	}
	return i == len(g)
}
