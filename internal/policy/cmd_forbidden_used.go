package policy

// ForbiddenCommands are those that block a server, wipe it out or read
// everything that passes through it. They are the label `command` of
// forbidden_command_calls_total.
func ForbiddenCommands() []string {
	return []string{"debug", "flushall", "flushdb", "keys", "monitor"}
}

// ForbiddenUsed finds calls of forbidden commands.
type ForbiddenUsed struct{}

// CheckServer looks at the calls since the last probe.
func (ForbiddenUsed) CheckServer(f *ServerFacts) (violated, known bool) {
	return f.anyCalled(ForbiddenCommands())
}
