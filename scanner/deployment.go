package scanner

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/state"
)

// defaultConcurrency is how many nodes of a deployment are scanned at once.
const defaultConcurrency = 4

// deployment is what the scanners of one target share.
type deployment struct {
	target     string
	bigKeys    *bigkeys.Target
	remembered state.State   // of the last run: its nodes
	turns      chan struct{} // holds one for each cycle that runs
	changed    chan struct{} // asks for a look at the topology
	moved      atomic.Int64  // when a key was last found on a node that does not hold it, Unix ns

	mu       sync.Mutex // of scanners, and of the state file
	file     string     // "" = none
	scanners []*Scanner
}

func newDeployment(target string, opts *Options) *deployment {
	d := &deployment{
		target:  target,
		bigKeys: bigkeys.NewTarget(),
		turns:   make(chan struct{}, cmp.Or(opts.Concurrency, defaultConcurrency)),
		changed: make(chan struct{}, 1),
		file:    opts.StateFile,
	}
	if opts.Remembered != nil {
		d.bigKeys = bigkeys.Restore(opts.Remembered.BigKeys)
		d.remembered.Nodes = opts.Remembered.Nodes
		opts.Remembered = nil // its keys may be many
	}
	return d
}

// suspectChange asks for a look at the topology, soon.
func (d *deployment) suspectChange() {
	select {
	case d.changed <- struct{}{}:
	default: // is asked for
	}
}

// keyMoved notes that a key was found on a node that does not hold it: slots
// move, and other nodes' cycles see some keys twice or not at all.
func (d *deployment) keyMoved() {
	d.moved.Store(time.Now().UnixNano())
	d.suspectChange()
}

// movedSince tells whether that happened after the time.
func (d *deployment) movedSince(at time.Time) bool {
	moved := d.moved.Load()
	return moved != 0 && moved >= at.UnixNano()
}

// scan tells which nodes the state file is about.
func (d *deployment) scan(scanners []*Scanner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scanners = scanners
}

// save writes the state file: all of it, whichever node has news.
func (d *deployment) save() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &state.State{Target: d.target, BigKeys: d.bigKeys.State()}
	for _, scanner := range d.scanners {
		s.Nodes = append(s.Nodes, scanner.state.remember(scanner.node.Address()))
	}
	return state.Save(d.file, s)
}
