package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"

	"redis_keyhealth_exporter/internal/resp"
)

// pipelineBytes is how much is written at once: more would only wait.
const pipelineBytes = 64 << 10

// load creates all keys, as fast as the server takes them.
func (d dataset) load(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	replies := make(chan error, 1)
	go func() {
		err := readReplies(conn)
		if err != nil {
			conn.Close() // or the writer would wait for ever
		}
		replies <- err
	}()
	sent := d.send(conn)
	if sent != nil {
		conn.Close()
	}
	if err := <-replies; err != nil {
		return err
	}
	return sent
}

// send writes the commands, and last a PING.
func (d dataset) send(conn io.Writer) error {
	var w resp.Writer
	for i := range d.keys {
		d.write(&w, i)
		if len(w.Bytes()) < pipelineBytes {
			continue
		}
		if _, err := conn.Write(w.Bytes()); err != nil {
			return err
		}
		w.Reset()
	}
	w.Command("PING")
	_, err := conn.Write(w.Bytes())
	return err
}

// readReplies reads up to that of the PING. All are lines.
func readReplies(conn io.Reader) error {
	lines := bufio.NewReaderSize(conn, pipelineBytes)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch {
		case line[0] == '-':
			return fmt.Errorf("the server says %q", line)
		case string(line) == "+PONG\r\n":
			return nil
		}
	}
}
