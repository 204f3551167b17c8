package scanner

import (
	"context"
	"sync"

	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

// Supervisor runs a scanner for each node and joins them all.
type Supervisor struct {
	nodes    []Node
	scanners []*Scanner
}

// NewSupervisor makes the scanners of the nodes.
func NewSupervisor(nodes []Node, opts Options) *Supervisor {
	s := &Supervisor{nodes: nodes}
	for _, node := range nodes {
		s.scanners = append(s.scanners, New(node, opts))
	}
	return s
}

// Run scans until ctx ends, and returns when every goroutine has.
func (s *Supervisor) Run(ctx context.Context) {
	var scans sync.WaitGroup
	for _, scanner := range s.scanners {
		scans.Go(func() { scanner.Run(ctx) })
	}
	<-ctx.Done()
	for _, node := range s.nodes {
		node.Close()
	}
	scans.Wait()
}

// SetPolicy changes what keys are judged by, from each node's next cycle on.
func (s *Supervisor) SetPolicy(p *policy.Policy) {
	for _, scanner := range s.scanners {
		scanner.SetPolicy(p)
	}
}

// States is what is known of each node now.
func (s *Supervisor) States() []snapshot.NodeState {
	states := make([]snapshot.NodeState, 0, len(s.scanners))
	for _, scanner := range s.scanners {
		states = append(states, scanner.State())
	}
	return states
}
