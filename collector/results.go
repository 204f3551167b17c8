package collector

import (
	"slices"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// What follows makes the collect functions of the families that come from a
// snapshot: each walks one dimension and leaves the value to its argument.

func eachDB(send func(*snapshot.DB, *out, string)) func(*snapshot.NodeState, *out) {
	return eachShownDB(1, send)
}

// eachShownDB is eachDB for a family that has so many series a database.
func eachShownDB(series int, send func(*snapshot.DB, *out, string)) func(*snapshot.NodeState, *out) {
	return func(n *snapshot.NodeState, o *out) {
		if n.Snapshot == nil {
			return
		}
		for i := range n.Snapshot.DBs {
			if db := &n.Snapshot.DBs[i]; o.view.shows(n, db.DB, series) {
				send(db, o, keyspace.DBLabel(db.DB))
			}
		}
	}
}

func eachType(send func(*snapshot.TypeStats, *out, ...string)) func(*snapshot.NodeState, *out) {
	return eachShownDB(keyspace.NumTypes, func(db *snapshot.DB, o *out, label string) {
		for _, t := range keyspace.Types() {
			send(&db.Types[t], o, label, t.String())
		}
	})
}

func sendKeys(t *snapshot.TypeStats, o *out, labels ...string) {
	if t.Keys.Known() {
		o.send(t.Keys.Value, labels...)
	}
}

func sendKeysStderr(t *snapshot.TypeStats, o *out, labels ...string) {
	if t.Keys.Known() {
		o.send(t.Keys.Stderr, labels...)
	}
}

func sendBytes(t *snapshot.TypeStats, o *out, labels ...string) {
	if t.Bytes != nil {
		o.send(t.Bytes.Value, labels...)
	}
}

func sendBytesStderr(t *snapshot.TypeStats, o *out, labels ...string) {
	if t.Bytes != nil {
		o.send(t.Bytes.Stderr, labels...)
	}
}

func sendMemoryHistogram(t *snapshot.TypeStats, o *out, labels ...string) {
	o.sendHistogram(t.Memory, labels...)
}

func sendElementsHistogram(t *snapshot.TypeStats, o *out, labels ...string) {
	o.sendHistogram(t.Elements, labels...)
}

func eachBig(value func(snapshot.BigStats) uint64) func(*snapshot.NodeState, *out) {
	return eachType(func(t *snapshot.TypeStats, o *out, labels ...string) {
		if t.Big == nil {
			return
		}
		for _, severity := range policy.Severities() {
			o.send(float64(value(t.Big[severity])), append(slices.Clip(labels), severity.String())...)
		}
	})
}

func sendNaming(db *snapshot.DB, o *out, label string) {
	if db.Named > 0 {
		o.send(float64(db.NamingBroken)/float64(db.Named), label)
	}
}

func sendTTL(db *snapshot.DB, o *out, label string) { o.sendHistogram(db.TTL, label) }

func sendPeak(db *snapshot.DB, o *out, label string) {
	if db.Expiring != nil {
		o.send(db.Expiring.Keys, label)
	}
}

func sendPeakTime(db *snapshot.DB, o *out, label string) {
	if db.Expiring != nil && !db.Expiring.At.IsZero() {
		o.send(unix(db.Expiring.At), label)
	}
}

func sendIdle(db *snapshot.DB, o *out, label string) { o.sendHistogram(db.Idle, label) }

// sendEncodings sends those that were seen.
func sendEncodings(t *snapshot.TypeStats, o *out, labels ...string) {
	if t.Encoded == nil {
		return
	}
	for i, keys := range t.Encoded {
		if keys > 0 {
			o.send(keys, append(slices.Clip(labels), keyspace.Encoding(i).String())...)
		}
	}
}

func eachViolation(value func(snapshot.Estimate) float64) func(*snapshot.NodeState, *out) {
	rules := policy.Rules()
	return func(n *snapshot.NodeState, o *out) {
		if n.Snapshot == nil {
			return
		}
		for _, db := range n.Snapshot.DBs {
			if !o.view.shows(n, db.DB, len(db.Namespaces)*len(n.Snapshot.Evaluated)) {
				continue
			}
			for _, ns := range db.Namespaces {
				for i, rule := range rules {
					if n.Snapshot.Evaluated[i] && ns.Violations[i].Known() {
						o.send(value(ns.Violations[i]), keyspace.DBLabel(db.DB), rule.ID, ns.Levels[i].String(), ns.Name)
					}
				}
			}
		}
	}
}

func sendSuspect(n *snapshot.NodeState, o *out) {
	if n.Snapshot != nil {
		o.send(boolean(len(n.Snapshot.Suspect) > 0))
	}
}

func eachTop(list func(*snapshot.Snapshot) []snapshot.Top, send func(*snapshot.Top, *out, ...string)) func(*snapshot.NodeState, *out) {
	return func(n *snapshot.NodeState, o *out) {
		if n.Snapshot == nil {
			return
		}
		for _, t := range list(n.Snapshot) {
			send(&t, o, keyspace.DBLabel(t.ID.DB), t.Namespace, t.Type.String(), t.Label)
		}
	}
}

func topBytes(s *snapshot.Snapshot) []snapshot.Top { return s.TopBytes }

func topElements(s *snapshot.Snapshot) []snapshot.Top { return s.TopElements }

func topFrequency(s *snapshot.Snapshot) []snapshot.Top { return s.TopFrequency }

// topBoth are the keys of both lists; a key that is in both comes twice, which
// out takes care of.
func topBoth(s *snapshot.Snapshot) []snapshot.Top { return slices.Concat(s.TopBytes, s.TopElements) }

func sendTopValue(t *snapshot.Top, o *out, labels ...string) { o.send(float64(t.Value), labels...) }

func sendTopExpiry(t *snapshot.Top, o *out, labels ...string) {
	if !t.Expires.IsZero() {
		o.send(unix(t.Expires), labels...)
	}
}

func eachInfoDB(value func(snapshot.DBInfo) float64) func(*snapshot.NodeState, *out) {
	return func(n *snapshot.NodeState, o *out) {
		for _, db := range n.Status.Info.DBs {
			if db.Expires >= 0 && o.view.shows(n, db.DB, 1) { // negative: INFO is denied
				o.send(value(db), keyspace.DBLabel(db.DB))
			}
		}
	}
}

func sendMemory(value func(*snapshot.ServerInfo) int64) func(*snapshot.NodeState, *out) {
	return func(n *snapshot.NodeState, o *out) {
		if n.Status.Info.HasMemory {
			o.send(float64(value(&n.Status.Info)))
		}
	}
}

func sendNewBigKeys(n *snapshot.NodeState, o *out) { sendEvents(n.BigKeys.New, o) }

func sendResolvedBigKeys(n *snapshot.NodeState, o *out) { sendEvents(n.BigKeys.Resolved, o) }

// sendEvents sends every combination, so that the first event is an increase.
func sendEvents(counts bigkeys.Counts, o *out) {
	for _, t := range keyspace.Types() {
		for _, severity := range policy.Severities() {
			o.send(float64(counts[t][severity]), t.String(), severity.String())
		}
	}
}

func eachListed(send func(*bigkeys.Listed, *out, ...string)) func(*snapshot.NodeState, *out) {
	return func(n *snapshot.NodeState, o *out) {
		for i := range n.BigKeys.Listed {
			k := &n.BigKeys.Listed[i]
			send(k, o, keyspace.DBLabel(k.DB), k.Namespace, k.Type.String(), k.Severity.String(), k.Label)
		}
	}
}

func sendListedSince(k *bigkeys.Listed, o *out, labels ...string) { o.send(unix(k.Since), labels...) }

func sendListedBytes(k *bigkeys.Listed, o *out, labels ...string) {
	o.send(float64(k.Bytes), labels...)
}

func sendListedElements(k *bigkeys.Listed, o *out, labels ...string) {
	if k.Elements >= 0 {
		o.send(float64(k.Elements), labels...)
	}
}

func sendWatchedBytes(n *snapshot.NodeState, o *out) {
	for _, w := range n.Watched {
		o.send(float64(w.Bytes), keyspace.DBLabel(w.DB), w.Namespace, w.Type.String(), w.Label)
	}
}

func sendWatchedElements(n *snapshot.NodeState, o *out) {
	for _, w := range n.Watched {
		if w.Elements >= 0 {
			o.send(float64(w.Elements), keyspace.DBLabel(w.DB), w.Namespace, w.Type.String(), w.Label)
		}
	}
}
