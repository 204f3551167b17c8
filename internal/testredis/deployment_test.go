package testredis

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestStartSentinels(t *testing.T) {
	t.Parallel()
	d := StartSentinels(t, 1, "secret")
	if got := d.Primary(t, "secret"); got != d.Servers[0] {
		t.Errorf("the primary is %v", got)
	}
}

func TestStartCluster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, true)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Primaries[0].Addr()}, Protocol: 2})
	defer client.Close()
	if err := client.Set(t.Context(), "foo", "bar", 0).Err(); err != nil { // slot 12182
		t.Fatal(err)
	}
	c.MoveSlot(t, 12182, c.Primaries[2], c.Primaries[0])
	if got, err := c.Primaries[0].Client(t).Get(t.Context(), "foo").Result(); got != "bar" || err != nil {
		t.Errorf("the key did not move: %q, %v", got, err)
	}
}
