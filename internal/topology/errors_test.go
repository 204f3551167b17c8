package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"redis_keyhealth_exporter/internal/fault"
	"redis_keyhealth_exporter/internal/resp"
)

// reply is an error as the server sends it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var _ redis.Error = reply("")

func TestClassify(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }
	for _, tc := range []struct {
		err  error
		want fault.Reason
	}{
		{dial(syscall.ECONNREFUSED), fault.Down},
		{dial(os.ErrDeadlineExceeded), fault.Down},
		{&net.DNSError{Err: "no such host", Name: "nowhere"}, fault.Down},
		{io.EOF, fault.ConnLost},
		{fmt.Errorf("redis: Conn is in a bad state: %w", io.EOF), fault.ConnLost},
		{read(syscall.ECONNRESET), fault.ConnLost},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, fault.ConnLost},
		{read(net.ErrClosed), fault.ConnLost},
		{redis.ErrClosed, fault.ConnLost},
		{reply("ERR max number of clients reached"), fault.ConnLost},
		{reply("DENIED Redis is running in protected mode because ..."), fault.ConnLost},
		{read(os.ErrDeadlineExceeded), fault.Timeout},
		{context.DeadlineExceeded, fault.Timeout},
		{reply("LOADING Redis is loading the dataset in memory"), fault.NotReady},
		{reply("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), fault.NotReady},
		{reply("CLUSTERDOWN The cluster is down"), fault.NotReady},
		{reply("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), fault.Busy},
		{reply("NOAUTH Authentication required."), fault.Auth},
		{reply("WRONGPASS invalid username-password pair or user is disabled."), fault.Auth},
		{reply("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"), fault.Auth},
		{reply("ERR invalid password"), fault.Auth},
		{reply("NOPERM this user has no permissions to run the 'scan' command"), fault.Permission},
		{reply("ERR unknown command 'scan', with args beginning with: '0' "), fault.Unsupported},
		{reply("ERR unknown subcommand 'NO-TOUCH'. Try CLIENT HELP."), fault.Unsupported},
		{reply("ERR DB index is out of range"), fault.Config},
		{reply("ERR invalid cursor"), fault.Protocol},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, fault.TLS},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, fault.TLS},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, fault.TLS},
		{fmt.Errorf("%w: announces *9", resp.ErrProtocol), fault.Protocol},
		{errors.New(`redis: can't parse "HTTP/1.1"`), fault.Protocol},
		{fmt.Errorf("wrapped: %w", fault.Newf(fault.Auth, "no password file")), fault.Auth},
	} {
		err := classify(tc.err)
		if got := fault.ReasonOf(err); got != tc.want {
			t.Errorf("%v is %v, want %v", tc.err, got, tc.want)
		}
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Errorf("%v is no fault.Error", err)
		}
	}
	if classify(nil) != nil {
		t.Error("nil is a fault")
	}
}

func TestDeniesKeys(t *testing.T) {
	for text, want := range map[string]bool{
		"NOPERM this user has no permissions to access one of the keys used as arguments": true,
		"NOPERM No permissions to access a key":                                           true,
		"NOPERM this user has no permissions to run the 'memory|usage' command":           false,
		"NOPERM User kh has no permissions to run the 'type' command":                     false,
		"ERR run": false,
	} {
		if got := deniesKeys(reply(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
