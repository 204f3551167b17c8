package policy

import "redis_keyhealth_exporter/internal/keyspace"

// HotAndBig finds the keys that are both, each of which makes the other worse.
type HotAndBig struct{}

// Of are hot_key and what makes a big key.
func (HotAndBig) Of() [][]string {
	return [][]string{{"hot_key"}, {"big_string", "many_elements", "big_collection", "big_element"}}
}

// Check has nothing to add.
func (HotAndBig) Check(*keyspace.Key) Severity { return Warning }
