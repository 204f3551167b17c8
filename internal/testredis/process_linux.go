package testredis

import "syscall"

// childAttr keeps the terminal's Ctrl-C from the server, which its owner stops,
// and makes the kernel end it with an owner that could not.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
