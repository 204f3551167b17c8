package snapshot

import "math"

// Estimates rest on how the keys of a database were drawn in a cycle:
//
//	certain    what is measured in every cycle whatever the draw: the big keys
//	           that are known, the listed ones, and names that are not probed
//	rest       all others, of which
//	  measured   one hash class in k: MEMORY USAGE
//	  detailed   one hash class in d, of other bits of the hash: TYPE and PTTL
//	  candidate  measured, and large enough to be asked for its type in any case
//	  fixed      one hash class in 64, within the detailed one: what OBJECT tells
//
// What a rule needs settles which of them it is counted in (policy.Basis): names
// and sizes need no estimate, types and TTLs are estimated from the detailed
// keys (proportion), what OBJECT tells from the candidates, who are all asked,
// and from the fixed sample for those too small to be one (fixedDraw).
//
// The hash is independent of everything that is estimated, so a class is taken
// as a simple random sample without replacement of the rest (Cochran, Sampling
// Techniques, 3rd ed., ch. 2, 6 and 12). With k = 1 and d = 1 the sample is the
// rest, and every figure is exact.

// moments are the sums of a sample.
type moments struct {
	n          float64
	sum, sumSq float64
}

func (m *moments) add(y float64) {
	m.n++
	m.sum += y
	m.sumSq += y * y
}

// variance is the sample's, s².
func (m *moments) variance() float64 {
	if m.n < 2 {
		return 0
	}
	return max(0, (m.sumSq-m.sum*m.sum/m.n)/(m.n-1))
}

// meanError is the variance of the mean of n drawn from size without
// replacement, given s².
func meanError(variance, n, size float64) float64 {
	if n <= 0 || n >= size {
		return 0
	}
	return (1 - n/size) * variance / n
}

// proportion estimates how many of size keys have a property that hits of n
// sampled ones have.
func proportion(hits, n, size float64) Estimate {
	if n <= 0 {
		if size > 0 {
			return unknown
		}
		return Estimate{}
	}
	p := hits / n
	variance := 0.0
	if n > 1 {
		variance = p * (1 - p) * n / (n - 1)
	}
	return Estimate{Value: size / n * hits, Stderr: size * math.Sqrt(meanError(variance, n, size))}
}

// unknown is no estimate at all.
var unknown = Estimate{Stderr: math.Inf(1)}

// Known tells whether there is an estimate at all: a small database may have no
// key in the sample.
func (e Estimate) Known() bool { return !math.IsInf(e.Stderr, 1) }

// Plus adds an estimate that rests on other keys.
func (e Estimate) Plus(o Estimate) Estimate {
	return Estimate{Value: e.Value + o.Value, Stderr: math.Hypot(e.Stderr, o.Stderr)}
}

// plus adds what is known for certain.
func (e Estimate) plus(certain float64) Estimate {
	e.Value += certain
	return e
}

// memoryDraw is what was measured of the rest of a database.
type memoryDraw struct {
	rest     float64 // keys of the rest
	measured moments // bytes of the ones that were measured
	small    moments // of these, the ones below the candidate floor
	detailed moments // of these, the ones whose type is known
}

// total estimates the bytes of the rest.
func (d *memoryDraw) total() Estimate {
	e := Estimate{Stderr: math.Inf(1)}
	if n := d.measured.n; n > 0 || d.rest == 0 {
		e.Value = ratio(d.rest, n) * d.measured.sum
		e.Stderr = d.rest * math.Sqrt(meanError(d.measured.variance(), n, d.rest))
	}
	return e
}

// ofType estimates the bytes of a type among the rest: those of its candidates,
// and of the small keys the share that it has of those whose type is known (a
// ratio estimate), so that the types add up to the estimate of the total.
func (d *memoryDraw) ofType(candidates, known *moments) Estimate {
	if d.measured.n == 0 {
		return Estimate{}
	}
	scale, spread, grow := d.rest/d.measured.n, 1.0, 1.0
	if d.detailed.n > 0 {
		spread = d.small.n / d.detailed.n
	}
	if d.detailed.sum > 0 {
		grow = d.small.sum / d.detailed.sum
	}
	value := candidates.sum + known.sum*grow

	// First phase: which keys were measured. The squares of small keys whose
	// type is not known are estimated like their number.
	n := d.measured.n
	variance := 0.0
	if n > 1 {
		variance = max(0, (candidates.sumSq+spread*known.sumSq-value*value/n)/(n-1))
	}
	first := d.rest * d.rest * meanError(variance, n, d.rest)

	// Second phase: which of the small ones have a known type. The residual of
	// the ratio is y·[type = t] − share·y.
	second := 0.0
	if m := d.detailed.n; m > 1 && d.detailed.sum > 0 {
		share := known.sum / d.detailed.sum
		residual := max(0, known.sumSq*(1-2*share)+share*share*d.detailed.sumSq)
		second = scale * scale * d.small.n * d.small.n * meanError(residual/(m-1), m, d.small.n)
	}
	return Estimate{Value: scale * value, Stderr: math.Sqrt(first + second)}
}

// fixedDraw is how the rest of a database was drawn for what OBJECT tells: every
// measured candidate, and of the small keys the fixed sample.
type fixedDraw struct {
	rest              float64
	candidates, small float64 // measured keys of the rest
	sampled           float64 // small keys of the fixed sample
}

// weights are how many keys each candidate and each sampled key stands for.
func (d *fixedDraw) weights() (candidate, sampled float64) {
	measured := d.candidates + d.small
	return ratio(d.rest, measured), ratio(ratio(d.rest, measured)*d.small, d.sampled)
}

// known tells whether there is anything to estimate from.
func (d *fixedDraw) known() bool {
	return (d.candidates+d.small > 0 || d.rest == 0) && (d.sampled > 0 || d.small == 0)
}

// estimate is how many keys of the rest have a property that so many of the
// candidates and of the sampled ones have. As in ofType there are two phases:
// which keys were measured, and which of the small ones were sampled.
func (d *fixedDraw) estimate(candidates, sampled float64) Estimate {
	if !d.known() {
		return unknown
	}
	n, p := d.candidates+d.small, ratio(sampled, d.sampled)
	drawn := moments{n: n, sum: candidates + p*d.small, sumSq: candidates + p*p*d.small}
	first := d.rest * d.rest * meanError(drawn.variance(), n, d.rest)
	small := ratio(d.rest, n) * d.small
	second := proportion(sampled, d.sampled, small)
	return Estimate{
		Value:  ratio(d.rest, n) * drawn.sum,
		Stderr: math.Sqrt(first + second.Stderr*second.Stderr),
	}
}
