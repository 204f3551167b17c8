package keyspace

// Command is a Redis command that the program may send. The list is closed and
// read-only: what is not on it never leaves the process.
type Command uint8

// The commands.
const (
	CmdScan Command = iota
	CmdMemoryUsage
	CmdType
	CmdPTTL
	CmdStrlen
	CmdLlen
	CmdHlen
	CmdScard
	CmdZcard
	CmdXlen
	CmdObjectEncoding
	CmdObjectIdletime
	CmdObjectFreq
	CmdGetRange
	CmdInfo
	CmdDBSize
	CmdPing
	CmdSelect
	CmdNoTouch
	CmdSetName
	CmdReadOnly
	CmdClusterSlots
	CmdCommandInfo
	CmdConfigGet  // only with --server.config-probe
	CmdSlowlogGet // only with --server.slowlog-hints
	NumCommands   = iota
)

var commandNames = [NumCommands]string{
	"scan", "memory|usage", "type", "pttl",
	"strlen", "llen", "hlen", "scard", "zcard", "xlen",
	"object|encoding", "object|idletime", "object|freq", "getrange",
	"info", "dbsize", "ping", "select",
	"client|no-touch", "client|setname", "readonly", "cluster|slots",
	"command|info", "config|get", "slowlog|get",
}

// String spells the command as INFO commandstats does: the label `command`.
func (c Command) String() string { return commandNames[c] }

// Commands lists every command, in the order of the constants.
func Commands() []Command {
	all := make([]Command, NumCommands)
	for i := range all {
		all[i] = Command(i)
	}
	return all
}

// LengthCommand is the command that counts what a key of the type holds.
func LengthCommand(t Type) (Command, bool) {
	switch t {
	case String:
		return CmdStrlen, true
	case List:
		return CmdLlen, true
	case Hash:
		return CmdHlen, true
	case Set:
		return CmdScard, true
	case ZSet:
		return CmdZcard, true
	case Stream:
		return CmdXlen, true
	default:
		return 0, false
	}
}
