package testredis

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is one run of a program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the program has ended and was reaped
}

// startProcess starts a program that writes what it prints to log.
func startProcess(log *os.File, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttr()

	started := make(chan error)
	go func() {
		defer close(p.done)
		// Linux sends Pdeathsig when the thread that forked ends, be it long
		// before its process. So this goroutine keeps the thread for as long
		// as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is of no interest, its log is
		}
	}()
	return p, <-started
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) error {
	return p.cmd.Process.Signal(sig)
}

// kill ends the process, paused or not, and waits until it is gone.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// terminate asks the process, paused or not, to end and waits until it has.
func (p *process) terminate(timeout time.Duration) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := p.signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
		return errors.New("still running " + timeout.String() + " after SIGTERM")
	}
}
