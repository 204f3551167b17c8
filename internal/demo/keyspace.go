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
	idle  time.Duration // for how long nobody used them
}

// lifetime is the range of the keys' TTLs; zero = they never expire.
type lifetime struct{ least, most time.Duration }

// keyspace is what a database is filled with: first what is healthy, then what
// breaks the rulebook.
func keyspace() [][]family {
	return [][]family{
		{ // db0: the shop
			{name: "session:user:%d", keys: 1200, ttl: lifetime{2 * time.Hour, day}, value: text(200, 800)},
			{name: "cart:{%d}:items", keys: 600, ttl: lifetime{day, 7 * day}, value: hash(2, 12, 20, 60)},
			{name: "order:detail:%d", keys: 700, ttl: lifetime{5 * day, 25 * day}, value: hash(8, 16, 10, 80)},
			{name: "feed:timeline:%d", keys: 300, ttl: lifetime{day, 3 * day}, value: list(20, 80, 8, 12)},
			{name: "product:views:%d", keys: 500, ttl: lifetime{day, 2 * day}, value: text(1, 6)},
			{name: "user:tags:%d", keys: 250, ttl: lifetime{7 * day, 25 * day}, value: set(5, 20)},
			{name: "ranking:game:%d", keys: 40, ttl: lifetime{2 * day, 14 * day}, value: zset(50, 300)},
			{name: "order:events:%d", keys: 20, ttl: lifetime{day, 7 * day}, value: stream(20, 60)},
			{name: "stats:visitors:%d", keys: 12, ttl: lifetime{7 * day, 20 * day}, value: hyperLogLog(100)},

			{name: "", keys: 1, ttl: lifetime{day, day}, value: text(40, 40)},
			{name: "userprofile%d", keys: 6, ttl: lifetime{day, 7 * day}, value: text(100, 400)},
			{name: "12306:ticket:%d", keys: 4, ttl: lifetime{day, 7 * day}, value: text(50, 100)},
			{name: "marketing:campaign:spring_sale:newsletter:recipients:%d", keys: 5, ttl: lifetime{day, 7 * day}, value: set(20, 60)},
			{name: "cart:guest %d", keys: 4, ttl: lifetime{day, day}, value: hash(2, 5, 20, 60)},
			{name: `session:"%d"`, keys: 3, ttl: lifetime{day, day}, value: text(200, 800)},
			{name: "feed:breaking\nnews:%d", keys: 2, ttl: lifetime{day, day}, value: list(10, 20, 8, 12)},
			{name: "\xac\xed\x00\x05t\x00\x0aorder:%d", keys: 3, ttl: lifetime{day, day}, value: text(100, 200)}, // as Java's serialiser writes it
			{name: "order:line-items:%d", keys: 8, ttl: lifetime{day, 7 * day}, value: list(2, 8, 20, 60)},
			{name: "user:profile.settings:%d", keys: 6, ttl: lifetime{day, 7 * day}, value: hash(3, 9, 10, 20)},

			{name: "product:description:%d", keys: 6, ttl: lifetime{10 * day, 20 * day}, value: text(12*kib, 60*kib)},
			{name: "stats:visitors:all", keys: 1, ttl: lifetime{20 * day, 20 * day}, value: hyperLogLog(8000)},
			{name: "ranking:game:global", keys: 1, ttl: lifetime{14 * day, 14 * day}, value: zset(20_000, 20_000)},
			{name: "order:lines:all", keys: 1, ttl: lifetime{7 * day, 7 * day}, value: hash(3000, 3000, 400, 600)},
			{name: "feed:timeline:frontpage", keys: 1, ttl: lifetime{2 * day, 2 * day}, value: list(4000, 4000, 8, 12)},
			{name: "user:followers:%d", keys: 2, value: set(2500, 6000)},
			{name: "order:events:all", keys: 1, value: stream(2500, 2500)},
			{name: "mail:outbox:%d", keys: 3, ttl: lifetime{2 * day, 2 * day}, value: list(5, 9, 12*kib, 24*kib)},
			{name: "image:thumbnails:%d", keys: 2, ttl: lifetime{7 * day, 7 * day}, value: hash(3, 3, 80*kib, 110*kib)},

			{name: "user:profile:%d", keys: 180, value: hash(5, 10, 10, 40)},
			{name: "config:feature:%d", keys: 40, value: text(5, 20)},
			{name: "archive:invoice:%d", keys: 200, value: text(100, 300), idle: 90 * day},
			{name: "voucher:flash:%d", keys: 2400, ttl: lifetime{3 * time.Hour, 3 * time.Hour}, value: text(16, 16)}, // in one minute, or half of them in each of two
			{name: "coupon:user:%d", keys: 60, ttl: lifetime{90 * day, 90 * day}, value: text(100, 300)},
		},
		{ // db1: its cache
			{name: "cache:page:%d", keys: 600, ttl: lifetime{2 * time.Hour, 12 * time.Hour}, value: text(kib, 6*kib)},
			{name: "cache:search:%d", keys: 300, ttl: lifetime{2 * time.Hour, 12 * time.Hour}, value: text(100, 2*kib)},
			{name: "lock:job:%d", keys: 60, ttl: lifetime{2 * time.Minute, 30 * time.Minute}, value: text(16, 16)},

			{name: "cache:sql:" + strings.Repeat("SELECT_*_FROM_orders_WHERE_", 640) + "%d", keys: 2, ttl: lifetime{day, day}, value: text(200, 400)},
			{name: "report:sales:all", keys: 1, ttl: lifetime{20 * day, 20 * day}, value: text(6*mib, 6*mib)},
			{name: "cache:rates:%d", keys: 25, value: text(50, 100)},
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
