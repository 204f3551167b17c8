package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"redis_keyhealth_exporter/internal/testredis"
)

const (
	startTimeout = 20 * time.Second
	poll         = 20 * time.Millisecond
)

// daemon is an exporter, ours or another, that is asked over HTTP.
type daemon struct {
	*child
	url    string
	client *http.Client
}

// startDaemon returns once it answers at path. args are made for the host:port
// that it is to listen on.
func (l *lab) startDaemon(ctx context.Context, program, path string, args func(listen string) []string) (*daemon, error) {
	port, err := testredis.FreePort()
	if err != nil {
		return nil, err
	}
	listen := "127.0.0.1:" + strconv.Itoa(port)
	c, err := start(ctx, io.Discard, slices.Concat(l.otherCPUs, []string{program}, args(listen))...)
	if err != nil {
		return nil, err
	}
	d := &daemon{c, "http://" + listen, &http.Client{}}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := d.await(ctx, func() bool { _, err := d.get(ctx, path); return err == nil }); err != nil {
		d.stop()
		return nil, d.explain(err)
	}
	return d, nil
}

var errEnded = errors.New("it ended")

// await polls until something happens.
func (d *daemon) await(ctx context.Context, happens func() bool) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !happens() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.ended:
			return errEnded
		case <-tick.C:
		}
	}
	return nil
}

// get returns a page, read whole.
func (d *daemon) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+path, nil)
	if err != nil {
		return "", err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return string(body), err
}

// exporter is the program that all this is about.
type exporter struct{ *daemon }

// startExporter returns once it listens.
func (l *lab) startExporter(ctx context.Context, redisAddr string, flags ...string) (*exporter, error) {
	if _, err := os.Stat(l.exporter); err != nil {
		return nil, fmt.Errorf("%w: run make build", err)
	}
	d, err := l.startDaemon(ctx, l.exporter, "/-/healthy", func(listen string) []string {
		return append([]string{"--redis.addr=redis://" + redisAddr, "--web.listen-address=" + listen, "--log.level=warn"}, flags...)
	})
	if err != nil {
		return nil, err
	}
	return &exporter{d}, nil
}

// firstCycle waits until everything was scanned once.
func (e *exporter) firstCycle(ctx context.Context) error {
	return e.await(ctx, func() bool { _, err := e.get(ctx, "/-/ready"); return err == nil })
}

// scanning waits until the walk is on its way.
func (e *exporter) scanning(ctx context.Context) error {
	return e.await(ctx, func() bool {
		m, err := e.metrics(ctx)
		return err == nil && m.sum("redis_keyhealth_scan_keys_total") > 0
	})
}

// metrics is a page of /metrics.
type metrics string

func (e *exporter) metrics(ctx context.Context) (metrics, error) {
	text, err := e.get(ctx, "/metrics")
	return metrics(text), err
}

// sum adds up the series of a family that carry all of the labels, each
// written as name="value".
func (m metrics) sum(family string, labels ...string) float64 {
	var sum float64
	for line := range strings.Lines(string(m)) {
		line = strings.TrimSpace(line)
		space := strings.LastIndexByte(line, ' ') // a label's value may hold some, too
		if space < 0 {
			continue
		}
		series := line[:space]
		if name, _, _ := strings.Cut(series, "{"); name != family {
			continue
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
			continue
		}
		if n, err := strconv.ParseFloat(line[space+1:], 64); err == nil {
			sum += n
		}
	}
	return sum
}
