package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"redis_keyhealth_exporter/internal/cli"
	"redis_keyhealth_exporter/internal/web"
)

const (
	pollEvery      = 100 * time.Millisecond
	requestTimeout = 2 * time.Second
	portAttempts   = 5
)

var (
	errEnded     = errors.New("the exporter ended")
	errOtherNode = errors.New("the report is of another server")
)

// exporter is the program itself, run in this process and asked over HTTP like
// any other.
type exporter struct {
	url    string
	redis  string // host:port of the server that it scans
	client *http.Client
	cancel context.CancelFunc
	ended  chan struct{}
	code   int // its exit code, once it ended
}

// startExporter returns once the first cycle is complete, with what it found.
// What goes wrong, the exporter tells on stderr itself.
func (d *demo) startExporter(ctx context.Context, redisAddr string) (*exporter, *web.NodeReport, error) {
	var err error
	for range portAttempts {
		var port int
		if port, err = d.pickPort(); err != nil {
			return nil, nil, err
		}
		e := d.launchExporter(ctx, redisAddr, port)
		var node *web.NodeReport
		node, err = e.await(ctx, func(*web.NodeReport) bool { return e.get(ctx, "/-/ready", nil) == nil })
		if err == nil {
			return e, node, nil
		}
		e.stop()
		if ctx.Err() != nil || !taken(port) {
			break
		}
		fmt.Fprintf(d.stderr, "demo: port %d is taken, trying another\n", port)
	}
	return nil, nil, err
}

func (d *demo) launchExporter(ctx context.Context, redisAddr string, port int) *exporter {
	ctx, cancel := context.WithCancel(ctx)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	e := &exporter{
		url:   "http://" + addr,
		redis: redisAddr,
		// A connection that is kept open would delay the exporter's end.
		client: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
		cancel: cancel,
		ended:  make(chan struct{}),
	}
	args := []string{
		"--redis.addr=redis://" + redisAddr,
		"--redis.name=demo",
		"--scan.interval=" + d.interval.String(),
		"--server.config-probe",
		"--web.listen-address=" + addr,
		"--log.level=warn",
	}
	go func() {
		defer close(e.ended)
		e.code = cli.Run(ctx, args, d.stderr, d.stderr)
	}()
	return e
}

// taken tells whether nobody can listen on the port.
func taken(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return true
	}
	listener.Close()
	return false
}

// stop ends the exporter and waits until it has.
func (e *exporter) stop() {
	e.cancel()
	<-e.ended
}

func (e *exporter) errEnded() error { return fmt.Errorf("%w with exit code %d", errEnded, e.code) }

// await returns the first report that done is content with. There is no time
// limit: a machine may be slow, or the program suspended for a while.
func (e *exporter) await(ctx context.Context, done func(*web.NodeReport) bool) (*web.NodeReport, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		// An error is no reason to give up: it may not listen yet.
		if node, err := e.report(ctx); err == nil && done(node) {
			return node, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.ended:
			return nil, e.errEnded()
		case <-tick.C:
		}
	}
}

// report fetches what the exporter found. It fails when somebody else answers,
// who was faster to take the port.
func (e *exporter) report(ctx context.Context) (*web.NodeReport, error) {
	var report web.Report
	if err := e.get(ctx, "/report.json", &report); err != nil {
		return nil, err
	}
	if len(report.Nodes) != 1 || report.Nodes[0].Node != e.redis {
		return nil, errOtherNode
	}
	return &report.Nodes[0], nil
}

// get asks for a path and, unless into is nil, decodes the JSON there.
func (e *exporter) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
	if err != nil {
		return err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s: %s", e.url, path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}
