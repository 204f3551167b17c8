package policy

import "strings"

// MaxmemoryPolicy finds servers that run out of memory, of their own or of what
// they may evict.
type MaxmemoryPolicy struct {
	FullPercent       int64 // of maxmemory, above which noeviction is a danger
	WithoutTTLPercent int64 // of the keys, above which volatile-* finds too few to evict
}

// CheckServer compares maxmemory with what happens when it is reached.
func (r *MaxmemoryPolicy) CheckServer(f *ServerFacts) (violated, known bool) {
	switch known := f.EvictionPolicy != ""; {
	case !known:
		return false, false
	case f.MaxBytes == 0:
		return true, true
	case f.EvictionPolicy == "noeviction":
		return above(f.UsedBytes, r.FullPercent, f.MaxBytes), true
	case strings.HasPrefix(f.EvictionPolicy, "volatile-"):
		return above(f.Keys-f.Expires, r.WithoutTTLPercent, f.Keys), true
	default:
		return false, true
	}
}

// above tells whether a part is more than so many hundredths of the whole.
func above(part, percent, whole int64) bool {
	return float64(part)*100 > float64(percent)*float64(whole)
}
