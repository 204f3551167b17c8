package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	memoryPoll  = 100 * time.Millisecond
	stopTimeout = 5 * time.Second

	// clockTick is the unit of /proc/PID/stat on every Linux that Go runs on.
	clockTick = 10 * time.Millisecond
)

// child is a program under measurement.
type child struct {
	cmd   *exec.Cmd
	err   error // how it ended
	ended chan struct{}

	stderr tail
	mu     sync.Mutex
	most   int64 // largest RSS seen
}

// start runs a command line. The child ends with ctx at the latest. It has an
// environment of its own: variables are flags to the exporters.
func start(ctx context.Context, stdout io.Writer, argv ...string) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = stdout, &c.stderr
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		c.err = c.cmd.Wait()
	}()
	go c.watch()
	return c, nil
}

// watch keeps the peak of RSS, which nobody can ask a process for that ended.
// rusage will not do: it counts what the parent had when it forked.
func (c *child) watch() {
	tick := time.NewTicker(memoryPoll)
	defer tick.Stop()
	for {
		c.look()
		select {
		case <-tick.C:
		case <-c.ended:
			return
		}
	}
}

func (c *child) look() {
	peak, err := c.memory("VmHWM")
	if err != nil {
		return // it ended
	}
	c.mu.Lock()
	c.most = max(c.most, peak)
	c.mu.Unlock()
}

// peak is the largest RSS so far, in bytes.
func (c *child) peak() int64 {
	c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// memory reads VmRSS or VmHWM, in bytes.
func (c *child) memory(field string) (int64, error) {
	text := procField(c.proc("status"), field)
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	return n << 10, err
}

func (c *child) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file) }

// cpu is the time that all CPUs together spent on it.
func (c *child) cpu() (time.Duration, error) {
	select {
	case <-c.ended:
		return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime(), nil
	default:
	}
	stat, err := os.ReadFile(c.proc("stat"))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(stat))
}

var errStat = errors.New("cannot be understood")

// parseCPU adds up utime and stime of a /proc/PID/stat. The name in it may
// contain anything, so fields are counted from behind it.
func parseCPU(stat string) (time.Duration, error) {
	const utime, stime = 11, 12 // behind the name
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime {
		return 0, fmt.Errorf("%q %w", stat, errStat)
	}
	user, err := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err, err2)
}

// descriptors is how many files and connections it has open.
func (c *child) descriptors() (int, error) {
	entries, err := os.ReadDir(c.proc("fd"))
	return len(entries), err
}

// wait returns when it has ended by itself, with what it complained of if it failed.
func (c *child) wait(ctx context.Context) error {
	<-c.ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.explain(c.err)
}

func (c *child) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", c.cmd, err, c.stderr.text())
}

// stop asks it to end, and makes it.
func (c *child) stop() {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return
	}
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(0, len(t.buf)-tailBytes):]
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
