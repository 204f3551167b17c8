package testredis

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports that are handed out. They lie below those that systems give to outgoing
// connections, of which one could otherwise take the port of a server that is
// down for a moment; and a cluster node's bus port, 10000 above, is valid.
const (
	minPort = 20000
	maxPort = 29999
)

// FreePort returns a TCP port of 127.0.0.1 that nobody listened on just now. It
// is not reserved: whoever binds it must cope with somebody else being faster.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := minPort + rand.IntN(maxPort-minPort+1)
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			last = err
			continue
		}
		return port, listener.Close()
	}
	return 0, errors.Join(errors.New("found no free port"), last)
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
