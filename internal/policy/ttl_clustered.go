package policy

import "slices"

// clustered is the rule that judges all expiring keys of a database together.
const clustered = "ttl_clustered"

// TTLClustered finds the keys that expire together: their deletion is a burst,
// and so are the misses behind it.
type TTLClustered struct {
	Share float64 // of a database's expiring keys,
	Keys  float64 // and keys, both to be exceeded within one clock minute
}

// Clustered tells whether so many keys of those that expire in a database are
// too many for one clock minute.
func (r *TTLClustered) Clustered(keys, expiring float64) bool {
	return keys > r.Keys && keys > r.Share*expiring
}

// TTLClustered is the rule of that name, and its row; nil = it is off.
func (p *Policy) TTLClustered() (rule *TTLClustered, row int) {
	row = slices.IndexFunc(p.rules, func(r Rule) bool { return r.ID == clustered })
	s := p.Settings(DefaultIndex, row)
	if !s.Judged() {
		return nil, row
	}
	return &TTLClustered{Share: float64(s.Values.Number("share")) / 100, Keys: float64(s.Values.Number("keys"))}, row
}
