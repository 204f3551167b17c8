package cli

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"redis_keyhealth_exporter/collector"
	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/policy"
)

// reloader holds what may change while the program runs: the policy. A reload
// changes all of it or nothing.
type reloader struct {
	file   string // --policy.file
	use    func(*policy.Policy)
	logger log.Logger

	turn    sync.Mutex // reloads take turns
	present atomic.Pointer[configuration]
}

// configuration is what one reload left.
type configuration struct {
	policy *policy.Policy
	loaded time.Time
	failed bool // a later reload
}

func loadPolicy(file string) (*policy.Policy, error) {
	p, err := config.LoadPolicy(file)
	if err != nil {
		return nil, fmt.Errorf("--policy.file: %w", err)
	}
	return p, nil
}

// newReloader begins with the policy; use is told of each one that follows.
func newReloader(file string, p *policy.Policy, use func(*policy.Policy), logger log.Logger) *reloader {
	r := &reloader{file: file, use: use, logger: logger}
	r.present.Store(&configuration{policy: p, loaded: time.Now()})
	return r
}

// reload reads the policy file anew. With an error the old policy stays.
func (r *reloader) reload() error {
	r.turn.Lock()
	defer r.turn.Unlock()
	p, err := loadPolicy(r.file)
	if err != nil {
		kept := *r.present.Load()
		kept.failed = true
		r.present.Store(&kept)
		level.Error(r.logger).Log("msg", "reload failed, the old policy stays", "err", oneLine(err))
		return err
	}
	r.present.Store(&configuration{policy: p, loaded: time.Now()})
	r.use(p)
	level.Info(r.logger).Log("msg", "policy reloaded; the next cycle of each node judges by it", "file", r.file, "namespaces", len(p.Namespaces()))
	return nil
}

// onSignal reloads for each signal until ctx ends.
func (r *reloader) onSignal(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			_ = r.reload() // logged and counted
		}
	}
}

// state is what the metrics say of it.
func (r *reloader) state() collector.Configuration {
	c := r.present.Load()
	return collector.Configuration{Loaded: c.loaded, Failed: c.failed, Namespaces: c.policy.Namespaces()}
}
