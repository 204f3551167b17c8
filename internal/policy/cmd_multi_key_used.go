package policy

// MultiKeyCommands work on several sets, sorted sets or lists at once. They are
// the label `command` of multi_key_command_calls_total.
func MultiKeyCommands() []string {
	return []string{
		"blmove", "lmove", "lmpop", "rpoplpush",
		"sdiff", "sdiffstore", "sinter", "sinterstore", "sunion", "sunionstore",
		"zdiff", "zdiffstore", "zinter", "zintercard", "zinterstore", "zunion", "zunionstore",
	}
}

// MultiKeyUsed finds calls of commands that work on several keys at once.
type MultiKeyUsed struct{}

// CheckServer looks at the calls since the last probe.
func (MultiKeyUsed) CheckServer(f *ServerFacts) (violated, known bool) {
	return f.anyCalled(MultiKeyCommands())
}
