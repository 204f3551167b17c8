package policy

// ServerFacts is what is known of a primary when a cycle ends: what the server
// rules judge. A nil map or pointer and an empty text stand for what the server
// did not tell, or was not asked for.
type ServerFacts struct {
	Called map[string]int64 // calls since the last probe, by command of ServerCommands
	Reset  bool             // the server began to count anew in between: of the calls before that nothing is known
	Known  map[string]bool  // commands of ForbiddenCommands that COMMAND INFO knows
	Config *ServerConfig    // nil = CONFIG GET is off or denied

	DBs           int // that hold keys
	Keys, Expires int64
	Businesses    int // first segments with more than 1 % of the keys, see Business

	EvictionPolicy      string // maxmemory_policy; "" = nothing is known of the memory
	UsedBytes, MaxBytes int64  // MaxBytes 0 = no limit
}

// ServerConfig are the few settings that are read by CONFIG GET.
type ServerConfig struct {
	LazyFree     map[string]bool // by name, those that the server has
	Timeout      int64           // seconds, 0 = none; -1 = not told
	ReplicaLimit int64           // hard limit of a replica's output buffer in bytes, 0 = none; -1 = not told
}

// Setting is a switch of a server.
type Setting uint8

// The settings. Untold is one that cannot be read, or was not asked for.
const (
	Untold Setting = iota
	Off
	On
)

// LazyExpire tells whether the server frees what expires in the background.
func (c *ServerConfig) LazyExpire() Setting {
	if c == nil {
		return Untold
	}
	switch on, told := c.LazyFree[ConfigLazyExpire]; {
	case !told:
		return Untold
	case on:
		return On
	default:
		return Off
	}
}

// Names of what ServerConfig holds, as CONFIG GET has them.
const (
	ConfigTimeout      = "timeout"
	ConfigOutputBuffer = "client-output-buffer-limit"
	ConfigLazyExpire   = "lazyfree-lazy-expire"
)

// ConfigLazyFree are the settings that lazyfree_off judges.
func ConfigLazyFree() []string {
	return []string{ConfigLazyExpire, "lazyfree-lazy-eviction", "lazyfree-lazy-server-del", "lazyfree-lazy-user-del"}
}

// ConfigNames are all settings that are read.
func ConfigNames() []string {
	return append(ConfigLazyFree(), ConfigTimeout, ConfigOutputBuffer)
}

// ServerChecker judges a server by one rule. known is false where a fact is
// missing without which nothing can be said.
type ServerChecker interface {
	CheckServer(*ServerFacts) (violated, known bool)
}

// Finding is the judgement of a server by one rule.
type Finding uint8

// The findings. NotJudged is that of all rules about keys, too.
const (
	NotJudged Finding = iota
	Kept
	Violated
)

func (f Finding) String() string { return [...]string{"not judged", "kept", "violated"}[f] }

// CheckServer judges a server by every rule about servers, by row of the
// rulebook; facts nil = it could not be asked, or is no primary.
func (p *Policy) CheckServer(facts *ServerFacts) []Finding {
	findings := make([]Finding, len(p.rules))
	if facts == nil {
		return findings
	}
	for _, c := range p.serverChecks {
		switch violated, known := c.CheckServer(facts); {
		case !known:
		case violated:
			findings[c.index] = Violated
		default:
			findings[c.index] = Kept
		}
	}
	return findings
}

// serverCheck is a rule about servers.
type serverCheck struct {
	index int // of its row
	ServerChecker
}

func (p *Policy) addServerChecks(settings []Settings) {
	for i, r := range p.rules {
		if r.NewServer != nil && settings[i].Judged() {
			p.serverChecks = append(p.serverChecks, serverCheck{index: i, ServerChecker: r.NewServer(settings[i].Values)})
		}
	}
}

// anyCalled tells whether one of the commands was called since the last probe.
func (f *ServerFacts) anyCalled(commands []string) (called, known bool) {
	for _, cmd := range commands {
		called = called || f.Called[cmd] > 0
	}
	return called, called || f.Called != nil && !f.Reset
}
