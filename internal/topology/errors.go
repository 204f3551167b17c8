package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/resp"
)

// replyReasons are the error replies that end a cycle, by their first words.
var replyReasons = []struct {
	prefix string
	reason fault.Reason
}{
	{"LOADING", fault.NotReady},
	{"MASTERDOWN", fault.NotReady},
	{"CLUSTERDOWN", fault.NotReady},
	{"BUSY ", fault.Busy},
	{"NOAUTH", fault.Auth},
	{"WRONGPASS", fault.Auth},
	{"ERR invalid password", fault.Auth},
	{"ERR AUTH", fault.Auth},
	{"ERR Client sent AUTH", fault.Auth},
	{"NOPERM", fault.Permission},
	{"ERR unknown command", fault.Unsupported},
	{"ERR unknown subcommand", fault.Unsupported},
	{"ERR An LFU maxmemory policy is", fault.Unsupported}, // OBJECT IDLETIME under one, FREQ under another
	{"ERR Unknown subcommand", fault.Unsupported},
	{"ERR DB index is out of range", fault.Config},
	{"ERR SELECT is not allowed", fault.Config},
	{"ERR max number of clients", fault.ConnLost},
	{"DENIED", fault.ConnLost}, // protected mode
}

// isReply tells an error that the server replied from one of the connection.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, redis.ErrClosed)
}

// replyReason classifies an error reply; false = there is none, or it is about
// one key only.
func replyReason(err error) (fault.Reason, bool) {
	if err == nil {
		return 0, false
	}
	text := err.Error()
	for _, r := range replyReasons {
		if strings.HasPrefix(text, r.prefix) {
			return r.reason, true
		}
	}
	return 0, false
}

// classify turns what a call returned into a fault (redis-facts: error
// classes). nil stays nil.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f
	}
	if isReply(err) {
		if reason, ok := replyReason(err); ok {
			return fault.New(reason, err)
		}
		return fault.New(fault.Protocol, err)
	}
	return fault.New(connReason(err), err)
}

// connReason classifies an error of the connection.
func connReason(err error) fault.Reason {
	var (
		dial    *net.OpError
		timeout net.Error
		dns     *net.DNSError
	)
	switch {
	case errors.Is(err, resp.ErrProtocol):
		return fault.Protocol
	case isTLS(err):
		return fault.TLS
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		return fault.Down
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.Timeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, redis.ErrClosed), strings.Contains(err.Error(), "bad state"):
		return fault.ConnLost
	}
	return fault.Protocol
}

func isTLS(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		remote    *net.OpError // an alert that comes behind the handshake
	)
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		errors.As(err, &remote) && remote.Op == "remote error"
}

// deniesKeys tells a NOPERM about a key pattern from one about a command.
func deniesKeys(err error) bool {
	return strings.HasPrefix(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "run the")
}
