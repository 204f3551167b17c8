//go:build !linux

package testredis

import "syscall"

// childAttr keeps the terminal's Ctrl-C from the server, which its owner stops.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
