package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	maxPasswordBytes = 64 << 10
	maxPEMBytes      = 4 << 20 // all authorities that a system trusts take a tenth
)

// readFile reads a file that is meant to be small: who names a folder, a device
// or a log by mistake is told so, instead of having it read for ever. Of a pipe
// nothing would be left to read when a connection is made anew.
func readFile(name string, maxBytes int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBytes {
		return nil, fmt.Errorf("%s: is no regular file of at most %d bytes", name, maxBytes)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxBytes))
}

// readPassword takes the line ends off that editors and echo leave behind. An
// empty file is one that is not written yet: to go on without a password would
// be another account's rights.
func readPassword(name string) (Secret, error) {
	content, err := readFile(name, maxPasswordBytes)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(content), "\r\n")
	if password == "" {
		return "", errors.New(name + ": holds no password")
	}
	return Secret(password), nil
}
