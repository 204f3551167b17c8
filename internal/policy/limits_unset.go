package policy

// LimitsUnset finds servers that keep idle clients for ever, or buffer without
// end for a replica that is slow.
type LimitsUnset struct{}

// CheckServer looks at both limits; one that is unset is enough.
func (LimitsUnset) CheckServer(f *ServerFacts) (violated, known bool) {
	if f.Config == nil {
		return false, false
	}
	timeout, buffer := f.Config.Timeout, f.Config.ReplicaLimit
	violated = timeout == 0 || buffer == 0
	return violated, violated || timeout > 0 && buffer > 0
}
