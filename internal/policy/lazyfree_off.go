package policy

// LazyfreeOff finds servers that free memory on their main thread.
type LazyfreeOff struct{}

// CheckServer looks at the settings that this version of the server has.
func (LazyfreeOff) CheckServer(f *ServerFacts) (violated, known bool) {
	if f.Config == nil {
		return false, false
	}
	for _, on := range f.Config.LazyFree {
		violated = violated || !on
	}
	return violated, len(f.Config.LazyFree) > 0
}
