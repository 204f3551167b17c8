package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/alecthomas/kingpin/v2"

	"redis_keyhealth_exporter/internal/resp"
)

// bareScan is a program that walks all keys and does nothing else: the least
// that a walk can cost.
func bareScan(addr string, count int) []string {
	return []string{"scan", "--addr", addr, "--count", strconv.Itoa(count)}
}

func declareScan(clause *kingpin.CmdClause, l *lab) func(context.Context) error {
	addr := clause.Flag("addr", "host:port").Required().String()
	count := clause.Flag("count", "COUNT of SCAN.").Required().Int()
	return func(ctx context.Context) error {
		names, err := scan(ctx, *addr, *count)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(l.stdout, names)
		return err
	}
}

func scan(ctx context.Context, addr string, count int) (names int, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	const longestName = 1 << 10
	var (
		reader = resp.NewReader(conn)
		writer resp.Writer
		page   resp.Page
	)
	for {
		writer.Reset()
		writer.Command("SCAN", strconv.FormatUint(page.Cursor, 10), "COUNT", strconv.Itoa(count))
		if _, err := conn.Write(writer.Bytes()); err != nil {
			return 0, err
		}
		if err := reader.Scan(&page, longestName); err != nil {
			return 0, err
		}
		if names += len(page.Names); page.Cursor == 0 {
			return names, nil
		}
	}
}

// own is a command line of this program.
func (l *lab) own(args []string) []string { return slices.Concat(l.otherCPUs, []string{l.self}, args) }
