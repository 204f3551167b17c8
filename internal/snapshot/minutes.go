package snapshot

import (
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
)

// minutesAhead are the clock minutes that 24 hours touch.
const minutesAhead = 24*60 + 1

// minutes counts the keys of one database by the clock minute in which they
// expire. There is one for all databases, which are walked one after the other:
// a server may have thousands.
type minutes struct {
	first    int64 // the minute of the first count, since 1970
	counts   [2][minutesAhead]uint32
	counting bool
}

// Peak is the clock minute in which most keys of a database expire.
type Peak struct {
	Keys float64
	At   time.Time // start of the minute; zero = nothing expires
}

// observe counts a key with a TTL: 0 = a certain one, 1 = one of the sample.
func (m *minutes) observe(of int, k *keyspace.Key, now time.Time) {
	if minute := now.Add(k.TTL).Unix()/60 - m.first; 0 <= minute && minute < minutesAhead {
		m.counts[of][minute]++
		m.counting = true
	}
}

// take ends a database, whose sampled keys stand for scale keys each: the
// fullest minute, and how many keys of both kinds expire in minutes that the
// rule, nil = none, finds too full.
func (m *minutes) take(scale, expiring float64, rule *policy.TTLClustered) (peak Peak, clustered [2]uint64) {
	if !m.counting {
		return Peak{}, clustered
	}
	for i := range minutesAhead {
		certain, sampled := m.counts[0][i], m.counts[1][i]
		keys := float64(certain) + scale*float64(sampled)
		if keys > peak.Keys {
			peak = Peak{keys, time.Unix((m.first+int64(i))*60, 0)}
		}
		if rule != nil && rule.Clustered(keys, expiring) {
			clustered[0] += uint64(certain)
			clustered[1] += uint64(sampled)
		}
	}
	m.counts, m.counting = [2][minutesAhead]uint32{}, false
	return peak, clustered
}
