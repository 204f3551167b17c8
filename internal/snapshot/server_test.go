package snapshot

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestBusinesses(t *testing.T) {
	several := func(format string, n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf(format, i))
		}
		return names
	}
	crowd := several("rare_%d:1", 80_000) // far more than there are counters
	for i := range 20_000 {
		crowd = append(crowd, fmt.Sprintf("business_%d:%d", i%10, i))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(crowd), func(i, j int) { crowd[i], crowd[j] = crowd[j], crowd[i] })
	for _, tc := range []struct {
		about string
		names []string
		want  int
	}{
		{"no name", nil, 0},
		{"no business", []string{"a", "1:2"}, 0},
		{"exactly 1 %", append(several("large:%d", 99), "small:1"), 1},
		{"more than 1 %", append(several("large:%d", 98), "small:1"), 2},
		{"names without a business are names", append(several("%d", 99), "small:1"), 0},
		{"ten of 2 % each in a crowd", crowd, 10},
	} {
		b := newBusinesses()
		for _, name := range tc.names {
			b.add(name)
		}
		if got := b.large(); got != tc.want || len(b.counts) > maxBusinesses {
			t.Errorf("%s: %d, want %d; %d counters", tc.about, got, tc.want, len(b.counts))
		}
	}
	b := newBusinesses()
	if n := testing.AllocsPerRun(3, func() {
		for _, name := range crowd {
			b.add(name)
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBusinesses(b *testing.B) {
	table := newBusinesses()
	names := make([]string, 1024)
	for i := range names {
		names[i] = fmt.Sprintf("business_%d:item:%d", i%20, i)
	}
	for i := 0; b.Loop(); i++ {
		table.add(names[i%len(names)])
	}
}
