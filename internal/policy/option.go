package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what an option of a rule is made of, and how it is written.
type Kind uint8

// The kinds.
const (
	Size     Kind = iota // bytes
	Count                // a number of something
	Percent              // a whole share of a hundred
	Duration             // nanoseconds
	Words                // a list of texts
)

// Option is a threshold or list of a rule that a policy may set.
type Option struct {
	Name    string
	Kind    Kind
	Default Value
	Max     int64 // of a number; 0 = that of the kind
}

// Value is the setting of an option: a Number in the unit of the kind, or Words.
type Value struct {
	Number int64
	Words  []string
}

const (
	// maxNumber is more than any server holds, and far enough from an overflow
	// for what floors multiply it by.
	maxNumber = 1 << 50

	maxWords     = 1000
	maxWordBytes = 256
)

// These make the options of a row.
func size(name string, def int64) Option {
	return Option{Name: name, Kind: Size, Default: Value{Number: def}}
}

func count(name string, def, limit int64) Option {
	return Option{Name: name, Kind: Count, Default: Value{Number: def}, Max: limit}
}

func percent(name string, def int64) Option {
	return Option{Name: name, Kind: Percent, Default: Value{Number: def}}
}

func duration(name string, def time.Duration) Option {
	return Option{Name: name, Kind: Duration, Default: Value{Number: int64(def)}}
}

func words(name string) Option { return Option{Name: name, Kind: Words} }

// Allowed tells how a value is written.
func (o Option) Allowed() string {
	switch o.Kind {
	case Size:
		return "a size above 0 in bytes, such as 10KiB, 5MiB or 10240"
	case Count, Percent:
		form := fmt.Sprintf("a whole number from 1 to %d", o.limit())
		if o.Kind == Percent {
			form += ", with or without %"
		}
		return form
	case Duration:
		return "a duration of at least 1s, such as 90s, 1h30m or 30d"
	default:
		return fmt.Sprintf("a list of at most %d words of 1 to %d bytes", maxWords, maxWordBytes)
	}
}

func (o Option) limit() int64 {
	switch {
	case o.Max != 0:
		return o.Max
	case o.Kind == Percent:
		return 100
	case o.Kind == Duration:
		return math.MaxInt64
	}
	return maxNumber
}

// valid tells whether a value is one that Allowed speaks of.
func (o Option) valid(v Value) bool {
	if o.Kind == Words {
		return v.Number == 0 && len(v.Words) <= maxWords &&
			!slices.ContainsFunc(v.Words, func(w string) bool { return w == "" || len(w) > maxWordBytes })
	}
	least := int64(1)
	if o.Kind == Duration {
		least = int64(time.Second)
	}
	return v.Words == nil && v.Number >= least && v.Number <= o.limit()
}

// Parse reads the text of a value that is a number.
func (o Option) Parse(text string) (Value, error) {
	var n int64
	var ok bool
	switch o.Kind {
	case Size:
		n, ok = parseSize(text)
	case Percent:
		n, ok = parseNumber(strings.TrimSuffix(text, "%"))
	case Duration:
		n, ok = parseDuration(text)
	case Count:
		n, ok = parseNumber(text)
	}
	v := Value{Number: n}
	if !ok || !o.valid(v) {
		return Value{}, fmt.Errorf("%q is not %s", text, o.Allowed())
	}
	return v, nil
}

// Format writes a value as Parse reads it, and Words for people.
func (o Option) Format(v Value) string {
	switch o.Kind {
	case Size:
		return formatSize(v.Number)
	case Percent:
		return strconv.FormatInt(v.Number, 10) + "%"
	case Duration:
		return formatDuration(time.Duration(v.Number))
	case Words:
		return "[" + strings.Join(v.Words, ", ") + "]"
	}
	return strconv.FormatInt(v.Number, 10)
}

// parseNumber takes digits alone. Neither 010 nor 1_000 is what everybody takes
// it for.
func parseNumber(s string) (int64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func parseSize(s string) (int64, bool) {
	unit := int64(1)
	for _, u := range sizeUnits {
		if number, found := strings.CutSuffix(s, u.name); found {
			s, unit = number, u.bytes
			break
		}
	}
	n, ok := parseNumber(s)
	if !ok || n > maxNumber/unit {
		return 0, false
	}
	return n * unit, true
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// parseDuration takes what Go writes, and days before it.
func parseDuration(s string) (int64, bool) {
	var total time.Duration
	if number, rest, found := strings.Cut(s, "d"); found {
		days, ok := parseNumber(number)
		if !ok || days > int64(math.MaxInt64/day) {
			return 0, false
		}
		if total, s = time.Duration(days)*day, rest; s == "" {
			return int64(total), true
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || total > math.MaxInt64-d {
		return 0, false
	}
	return int64(total + d), true
}

func formatDuration(d time.Duration) string {
	text := ""
	if days := d / day; days > 0 {
		text = strconv.FormatInt(int64(days), 10) + "d"
		if d %= day; d == 0 {
			return text
		}
	}
	short := d.String()
	if rest, whole := strings.CutSuffix(short, "m0s"); whole {
		short = rest + "m"
	}
	if rest, whole := strings.CutSuffix(short, "h0m"); whole {
		short = rest + "h"
	}
	return text + short
}

// Values are the options of one rule by name: all of them.
type Values map[string]Value

// get is for rows, which know their options: another name is a mistake there.
func (v Values) get(name string) Value {
	value, ok := v[name]
	if !ok {
		panic("policy: a row asks for an option that it does not have: " + name)
	}
	return value
}

// Number is the value of an option that is a number.
func (v Values) Number(name string) int64 { return v.get(name).Number }

// Duration is the value of an option that is one.
func (v Values) Duration(name string) time.Duration { return time.Duration(v.Number(name)) }

// Words is the value of an option that is a list.
func (v Values) Words(name string) []string { return v.get(name).Words }
