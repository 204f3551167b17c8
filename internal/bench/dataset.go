package main

import (
	"fmt"
	"strconv"
	"strings"

	"redis_keyhealth_exporter/internal/resp"
)

// bigEvery is how rare big keys are: one key in so many.
const bigEvery = 10_000

// dataset is what a server is filled with: always the same, for a number of
// keys.
type dataset struct {
	keys     int
	big      bool // one key in bigEvery is big
	families []family
}

// family is keys of one kind. A key's number is its place in the dataset; dice
// are random bits that belong to it.
type family struct {
	percent int // of all keys
	name    string
	expires bool
	write   func(w *resp.Writer, name string, dice uint64)
}

// mixed is what an application might have: 70 % strings, 15 % hashes, 5 % lists,
// sets and sorted sets each; 40 % of the keys expire.
func mixed(keys int) dataset {
	return dataset{keys, true, []family{
		{25, "user:session:", true, text(50, 300)},
		{15, "product:views:", true, number},
		{20, "order:detail:", false, text(100, 900)},
		{10, "cache:page:", false, text(200, 2000)},
		{15, "user:profile:", false, collection("HSET", fieldAndValue, 3, 12)},
		{5, "feed:timeline:", false, collection("RPUSH", member, 5, 30)},
		{5, "user:tags:", false, collection("SADD", member, 3, 15)},
		{5, "ranking:game:", false, collection("ZADD", scoreAndMember, 5, 30)},
	}}
}

// small is a dataset of which many millions fit: short strings, some of which
// expire, and few small hashes.
func small(keys int) dataset {
	return dataset{keys, false, []family{
		{20, "user:session:", true, text(8, 16)},
		{70, "product:views:", false, number},
		{10, "user:flags:", false, collection("HSET", fieldAndValue, 1, 2)},
	}}
}

// key is the i-th, and whether it is a big one.
func (d dataset) key(i int) (f *family, name string, big bool) {
	big = d.big && i%bigEvery == bigEvery-1
	at := i % 100
	for j := range d.families {
		if f = &d.families[j]; at < f.percent {
			break
		}
		at -= f.percent
	}
	if big {
		return f, "big:" + strconv.Itoa(i), true
	}
	return f, f.name + strconv.Itoa(i), false
}

// someString is the name of a small string, drawn by the dice.
func (d dataset) someString(dice uint64) string {
	i := int(dice % uint64(d.keys))
	// The first family is one of strings.
	_, name, _ := d.key(i - i%100)
	return name
}

// write appends the commands that create the i-th key.
func (d dataset) write(w *resp.Writer, i int) {
	f, name, big := d.key(i)
	dice := mix(uint64(i))
	if big {
		writeBig(w, name, i/bigEvery)
		return
	}
	f.write(w, name, dice)
	if f.expires { // within 1 to 25 days
		const hour = 3_600_000
		w.Command("PEXPIRE", name, strconv.FormatUint(24*hour+mix(dice)%(24*24*hour), 10))
	}
}

// writeBig makes the n-th big key: a string of 100 KiB to 3 MiB, or a collection
// of 10,000 to 50,000 elements.
func writeBig(w *resp.Writer, name string, n int) {
	elements := 10_000 * (1 + n/5%5)
	switch n % 5 {
	case 0:
		w.Command("SET", name, prose(100<<10<<(n/5%6)))
	case 1:
		collection("HSET", fieldAndValue, elements, elements)(w, name, 0)
	case 2:
		collection("RPUSH", member, elements, elements)(w, name, 0)
	case 3:
		collection("SADD", member, elements, elements)(w, name, 0)
	case 4:
		collection("ZADD", scoreAndMember, elements, elements)(w, name, 0)
	}
}

// prose is n bytes.
func prose(n int) string {
	const line = "all that glitters is not gold; "
	return strings.Repeat(line, n/len(line)+1)[:n]
}

// text is a string of least to most bytes.
func text(least, most int) func(*resp.Writer, string, uint64) {
	return func(w *resp.Writer, name string, dice uint64) {
		w.Command("SET", name, prose(between(dice, least, most)))
	}
}

// number is a string that the server keeps as one.
func number(w *resp.Writer, name string, dice uint64) {
	w.Command("SET", name, strconv.FormatUint(dice%1_000_000, 10))
}

// perCommand is how many elements are added at once.
const perCommand = 500

// collection has least to most elements; element makes the words of each.
func collection(command string, element func(words []string, i int) []string, least, most int) func(*resp.Writer, string, uint64) {
	return func(w *resp.Writer, name string, dice uint64) {
		var words []string
		n := between(dice, least, most)
		for i := range n {
			if len(words) == 0 {
				words = append(words, command, name)
			}
			words = element(words, i)
			if i%perCommand == perCommand-1 || i == n-1 {
				w.Command(words...)
				words = words[:0]
			}
		}
	}
}

func fieldAndValue(words []string, i int) []string {
	return append(words, "field"+strconv.Itoa(i), prose(10+i%20))
}

func member(words []string, i int) []string { return append(words, "user:"+strconv.Itoa(1001+i)) }

func scoreAndMember(words []string, i int) []string {
	return append(words, strconv.Itoa(i*7919%100_000), "user:"+strconv.Itoa(1001+i))
}

func between(dice uint64, least, most int) int { return least + int(dice%uint64(most-least+1)) }

// mix makes random bits of a number (SplitMix64).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// thousands writes a number with separators.
func thousands(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
