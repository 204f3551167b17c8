package topology

import (
	"context"
	"sync/atomic"

	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/scanner"
)

// New is the topology of a deployment. It dials nothing.
func New(cfg config.Deployment, opts Options) scanner.Topology {
	switch cfg.Mode {
	case config.Sentinel:
		return newSentinels(cfg, opts)
	case config.Cluster:
		return newCluster(cfg, opts)
	case config.Auto:
		a := &auto{node: newNode(cfg.Redis, seedID(cfg)), cluster: newCluster(cfg, opts)}
		a.node.auto = a
		return a
	}
	return static{newNode(cfg.Redis, seedID(cfg))}
}

func seedID(cfg config.Deployment) keyspace.NodeID {
	return keyspace.NodeID{Target: cfg.Target, Node: cfg.Address}
}

// static is one server.
type static struct{ *node }

func (s static) Nodes(context.Context) ([]scanner.Node, error) { return []scanner.Node{s.node}, nil }

// auto is one server, until that says that it is part of a cluster: no connection
// is made for the sake of finding out.
type auto struct {
	node    *node
	cluster *cluster
	found   atomic.Bool // that it is part of a cluster
}

func (a *auto) ID() keyspace.NodeID { return a.node.id }

func (a *auto) Nodes(ctx context.Context) ([]scanner.Node, error) {
	if a.found.Load() {
		return a.cluster.Nodes(ctx)
	}
	return []scanner.Node{a.node}, nil
}

// fits compares what a server says of itself with what the topology knows of it.
// What no longer is what it was must not be scanned on.
func (n *node) fits(info *scanner.Info, p *place) error {
	switch {
	case info.Sentinel:
		return fault.Newf(fault.Config, "it is a sentinel: --redis.sentinel-master is missing")
	case n.auto != nil && info.Cluster:
		n.auto.found.Store(true)
		return fault.Newf(fault.Topology, "it is part of a cluster, of which every node is to be scanned")
	case p.Role == "":
		return nil
	}
	info.PrimaryAddress = ""
	if info.Role != "" && info.Role != p.Role {
		return fault.Newf(fault.Topology, "it was to be scanned as a %s and is a %s now", p.Role, info.Role)
	}
	return nil
}
