package main

import (
	"strings"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	day = 24 * time.Hour

	newKeysDB = 0
)

// family is keys of one kind.
type family struct {
	name  string // "%d" in it stands for the key's number
	keys  int
	ttl   lifetime
	value value
}

// lifetime is the range of the keys' TTLs; zero = they never expire.
type lifetime struct{ least, most time.Duration }

// keyspace is what a database is filled with: first what is healthy, then what
// breaks the rulebook.
func keyspace() [][]family {
	return [][]family{
		{ // db0: the shop
			{"session:user:%d", 1200, lifetime{2 * time.Hour, day}, text(200, 800)},
			{"cart:{%d}:items", 600, lifetime{day, 7 * day}, hash(2, 12, 20, 60)},
			{"order:detail:%d", 700, lifetime{5 * day, 25 * day}, hash(8, 16, 10, 80)},
			{"feed:timeline:%d", 300, lifetime{day, 3 * day}, list(20, 80, 8, 12)},
			{"product:views:%d", 500, lifetime{day, 2 * day}, text(1, 6)},
			{"user:tags:%d", 250, lifetime{7 * day, 25 * day}, set(5, 20)},
			{"ranking:game:%d", 40, lifetime{2 * day, 14 * day}, zset(50, 300)},
			{"order:events:%d", 20, lifetime{day, 7 * day}, stream(20, 60)},
			{"stats:visitors:%d", 12, lifetime{7 * day, 20 * day}, hyperLogLog(100)},

			{"", 1, lifetime{day, day}, text(40, 40)},
			{"userprofile%d", 6, lifetime{day, 7 * day}, text(100, 400)},
			{"12306:ticket:%d", 4, lifetime{day, 7 * day}, text(50, 100)},
			{"marketing:campaign:spring_sale:newsletter:recipients:%d", 5, lifetime{day, 7 * day}, set(20, 60)},
			{"cart:guest %d", 4, lifetime{day, day}, hash(2, 5, 20, 60)},
			{`session:"%d"`, 3, lifetime{day, day}, text(200, 800)},
			{"feed:breaking\nnews:%d", 2, lifetime{day, day}, list(10, 20, 8, 12)},
			{"\xac\xed\x00\x05t\x00\x0aorder:%d", 3, lifetime{day, day}, text(100, 200)}, // as Java's serialiser writes it
			{"order:line-items:%d", 8, lifetime{day, 7 * day}, list(2, 8, 20, 60)},
			{"user:profile.settings:%d", 6, lifetime{day, 7 * day}, hash(3, 9, 10, 20)},

			{"product:description:%d", 6, lifetime{10 * day, 20 * day}, text(12*kib, 60*kib)},
			{"stats:visitors:all", 1, lifetime{20 * day, 20 * day}, hyperLogLog(8000)},
			{"ranking:game:global", 1, lifetime{14 * day, 14 * day}, zset(20_000, 20_000)},
			{"order:lines:all", 1, lifetime{7 * day, 7 * day}, hash(3000, 3000, 400, 600)},
			{"feed:timeline:frontpage", 1, lifetime{2 * day, 2 * day}, list(4000, 4000, 8, 12)},
			{"user:followers:%d", 2, lifetime{}, set(2500, 6000)},
			{"order:events:all", 1, lifetime{}, stream(2500, 2500)},
			{"mail:outbox:%d", 3, lifetime{2 * day, 2 * day}, list(5, 9, 12*kib, 24*kib)},
			{"image:thumbnails:%d", 2, lifetime{7 * day, 7 * day}, hash(3, 3, 80*kib, 110*kib)},

			{"user:profile:%d", 180, lifetime{}, hash(5, 10, 10, 40)},
			{"config:feature:%d", 40, lifetime{}, text(5, 20)},
			{"coupon:user:%d", 60, lifetime{90 * day, 90 * day}, text(100, 300)},
		},
		{ // db1: its cache
			{"cache:page:%d", 600, lifetime{2 * time.Hour, 12 * time.Hour}, text(kib, 6*kib)},
			{"cache:search:%d", 300, lifetime{2 * time.Hour, 12 * time.Hour}, text(100, 2*kib)},
			{"lock:job:%d", 60, lifetime{2 * time.Minute, 30 * time.Minute}, text(16, 16)},

			{"cache:sql:" + strings.Repeat("SELECT_*_FROM_orders_WHERE_", 640) + "%d", 2, lifetime{day, day}, text(200, 400)},
			{"report:sales:all", 1, lifetime{20 * day, 20 * day}, text(6*mib, 6*mib)},
			{"cache:rates:%d", 25, lifetime{}, text(50, 100)},
		},
	}
}

// newKeys are the big keys that come while the demonstration runs.
func newKeys() []family {
	return []family{
		{name: "ranking:season:all", keys: 1, value: zset(15_000, 15_000)},
		{name: "cart:import:all", keys: 1, value: hash(3000, 3000, 20, 60)},
		{name: "report:export:all", keys: 1, value: text(6*mib, 6*mib)},
	}
}
