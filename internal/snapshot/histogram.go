package snapshot

import "math"

// Histogram counts observations into fixed buckets; the last one has no bound.
type Histogram struct {
	Bounds []float64 // upper bounds, inclusive, ascending; shared, never changed
	Counts []uint64  // one more than Bounds; not cumulative
	Sum    float64
}

// The buckets of the contract (docs/metrics.md).
var (
	memoryBounds   = []float64{128, 512, 1024, 4096, 10240, 102400, 1048576, 5242880, 10485760, 104857600}
	elementsBounds = []float64{1000, 5000, 10000, 100000, 1000000}
	idleBounds     = []float64{60, 3600, 86400, 604800, 2592000, 7776000}
	ttlBounds      = []float64{60, 600, 3600, 86400, 604800, 2592000}
)

func newHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) observe(v float64) {
	i := 0
	for i < len(h.Bounds) && v > h.Bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += v
}

// observeSmall counts what is known to lie in the first bucket, unmeasured.
func (h *Histogram) observeSmall() { h.Counts[0]++ }

// weighted adds another histogram of the same bounds, each of whose
// observations stands for weight of them. Roundings are to whole observations.
func (h *Histogram) weighted(o *Histogram, weight float64) {
	for i, n := range o.Counts {
		h.Counts[i] += uint64(math.Round(weight * float64(n)))
	}
	h.Sum += weight * o.Sum
}

// Count is the number of observations.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Cumulative are the counts as Prometheus wants them: at or below each bound.
func (h *Histogram) Cumulative() map[float64]uint64 {
	buckets := make(map[float64]uint64, len(h.Bounds))
	var n uint64
	for i, bound := range h.Bounds {
		n += h.Counts[i]
		buckets[bound] = n
	}
	return buckets
}
