package testredis

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServerDiesWithOwner(t *testing.T) {
	t.Parallel()
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"=1")
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dir, addr, found := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !found {
		t.Fatalf("the owner has no server: %q, %v", line, err)
	}
	defer os.RemoveAll(dir)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // says that it was killed
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	if err == nil || os.IsTimeout(err) {
		t.Errorf("the server outlives its owner: %v", err)
	}
}

func TestServerSurvivesThread(t *testing.T) {
	t.Parallel()
	launched := make(chan *Server)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		s, err := Launch(Options{})
		if err != nil {
			t.Error(err)
		}
		launched <- s
	}()
	s := <-launched
	if s == nil {
		return
	}
	defer s.Close()
	// The thread ends some time after the goroutine; a dying server would end
	// the connection well within this.
	client := s.Client(t)
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		mustPing(t, client)
	}
}

func TestServerGetsNoTerminalSignals(t *testing.T) {
	t.Parallel()
	s := Start(t)
	pid := s.proc.cmd.Process.Pid
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the server %d is in process group %d (%v)", pid, group, err)
	}
}
