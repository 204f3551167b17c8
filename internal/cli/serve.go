package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"redis_keyhealth_exporter/collector"
	"redis_keyhealth_exporter/internal/config"
	"redis_keyhealth_exporter/internal/gokitslog"
	"redis_keyhealth_exporter/internal/state"
	"redis_keyhealth_exporter/internal/topology"
	"redis_keyhealth_exporter/internal/web"
	"redis_keyhealth_exporter/scanner"
)

// shutdownTimeout is how long scrapes in flight may take to end.
const shutdownTimeout = time.Second

// serve scans and exposes metrics until ctx ends. Its errors are those of the
// configuration: whatever befalls Redis is no reason to end.
func serve(ctx context.Context, f *flags, stderr io.Writer) error {
	hangups := make(chan os.Signal, 1) // whoever sends one early does not end the program
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	redis, err := f.validate()
	if err != nil {
		return err
	}
	rules, err := loadPolicy(f.policyFile)
	if err != nil {
		return err
	}
	logger, undecorated := newLoggers(f.log, stderr)
	topology.RouteLogs(logger)
	remembered, err := remembered(f.scan.StateFile, redis.Target, logger)
	if err != nil {
		return err
	}
	supervisor := scanner.NewSupervisor(topology.New(redis, topology.Options{}), scanner.Options{
		Policy:           rules,
		Interval:         f.scan.Interval,
		WatchInterval:    f.scan.WatchInterval,
		Count:            f.scan.Count,
		MaxDuty:          f.scan.MaxDuty,
		MaxKeysPerSecond: f.scan.MaxKeysPerSecond,
		Sample:           f.scan.Sample,
		Detail:           f.scan.DetailRatio(),
		TopKeys:          f.scan.TopKeys,
		Concurrency:      f.scan.Concurrency,
		ConfigProbe:      f.server.ConfigProbe,
		SlowlogHints:     f.server.SlowlogHints,
		StateFile:        f.scan.StateFile,
		Remembered:       remembered,
		Logger:           logger,
	})
	reloader := newReloader(f.policyFile, rules, supervisor.SetPolicy, logger)
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		versioncollector.NewCollector(program),
		collector.New(collector.Options{Source: supervisor, MaxSeries: f.scan.MaxSeries, Configuration: reloader.state}),
	)
	handler, err := web.New(web.Options{
		Source:        supervisor,
		Gatherer:      registry,
		Registerer:    registry,
		TelemetryPath: f.telemetry,
		Version:       version.Info(),
		Interval:      f.scan.Interval,
		Reload:        reloader.reload,
		Logger:        logger,
	})
	if err != nil {
		return err
	}
	server := web.NewServer(handler, logger)
	return run(ctx, server, func() error {
		return toolkit.ListenAndServe(server, f.web, gokitslog.New(undecorated, slogLevel(f.log)))
	}, func(ctx context.Context) {
		level.Info(logger).Log("msg", "scanning", "version", version.Info(), "target", redis.Target, "address", redis.Address, "mode", redis.Mode)
		if os.Geteuid() == 0 {
			level.Info(logger).Log("msg", "running as root: nothing here needs it")
		}
		var reloads sync.WaitGroup
		reloads.Go(func() { reloader.onSignal(ctx, hangups) })
		supervisor.Run(ctx)
		reloads.Wait()
		level.Info(logger).Log("msg", "shutting down")
	})
}

// remembered loads the state file. One that is corrupt is no reason to end: the
// scan begins with a new baseline, as without a file.
func remembered(path, target string, logger log.Logger) (*state.State, error) {
	if path == "" {
		return nil, nil
	}
	s, err := state.Load(path, target)
	switch {
	case errors.Is(err, state.ErrCorrupt):
		level.Warn(logger).Log("msg", "what is remembered of big keys is lost, the first cycle is a new baseline", "err", err)
	case err != nil:
		return nil, fmt.Errorf("--state.file: %w", err)
	}
	return s, nil
}

// run owns the program's goroutines: the web server and the scan. Whichever
// ends, ends the other, and both are joined. Nothing is scanned before all
// addresses are listened on: a second exporter on one port must not scan a
// server twice.
func run(ctx context.Context, server *http.Server, listen func() error, scan func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		joined sync.WaitGroup
		once   sync.Once
		failed error
	)
	listening := make(chan struct{})
	server.BaseContext = func(net.Listener) context.Context { // called when a listener begins to serve
		once.Do(func() { close(listening) })
		return context.Background()
	}
	joined.Go(func() {
		defer cancel()
		if err := listen(); !errors.Is(err, http.ErrServerClosed) {
			failed = fmt.Errorf("--web.listen-address: %w", err)
		}
	})
	joined.Go(func() {
		<-ctx.Done()
		// A fresh context: the one that ended says nothing of how long to wait.
		patience, done := context.WithTimeout(context.Background(), shutdownTimeout)
		defer done()
		if server.Shutdown(patience) != nil {
			server.Close()
		}
	})
	select {
	case <-listening:
		scan(ctx)
	case <-ctx.Done():
	}
	joined.Wait()
	return failed
}

// validate checks all flags but the policy, and turns to no server.
func (f *flags) validate() (config.Deployment, error) {
	redis, err := f.redis.Validate()
	if err == nil {
		err = f.scan.Validate()
	}
	if err == nil {
		err = validateWeb(f)
	}
	return redis, err
}

// validateWeb finds what exporter-toolkit would only tell later, or less clearly.
func validateWeb(f *flags) error {
	if path := *f.web.WebConfigFile; path != "" {
		if err := toolkit.Validate(path); err != nil {
			return fmt.Errorf("--web.config.file: %s: %w", path, err)
		}
	}
	if *f.web.WebSystemdSocket && os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return errors.New("--web.systemd-socket: systemd did not start this process with a socket")
	}
	for _, address := range *f.web.WebListenAddresses {
		if strings.HasPrefix(address, "vsock://") {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("--web.listen-address: %w", err)
		}
	}
	if err := web.ValidateTelemetryPath(f.telemetry); err != nil {
		return fmt.Errorf("--web.telemetry-path: %w", err)
	}
	return nil
}
