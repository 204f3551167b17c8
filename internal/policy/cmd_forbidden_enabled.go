package policy

// ForbiddenEnabled finds servers on which a forbidden command was neither
// renamed nor switched off. What our own account may call is another matter.
type ForbiddenEnabled struct{}

// CheckServer looks at what COMMAND INFO knows.
func (ForbiddenEnabled) CheckServer(f *ServerFacts) (violated, known bool) {
	for _, cmd := range ForbiddenCommands() {
		violated = violated || f.Known[cmd]
	}
	return violated, f.Known != nil
}
