package policy

import (
	"strings"
	"testing"
	"time"

	"redis_keyhealth_exporter/internal/keyspace"
)

// names makes a table of names that are all healthy or all in violation.
func names(want Severity, names ...string) []judgement {
	var table []judgement
	for _, name := range names {
		table = append(table, judgement{"name", named(name), want})
	}
	return table
}

func TestNameFormat(t *testing.T) {
	judge(t, "name_format", nil, names(Healthy,
		"user:1", "user:data:1", "User_2:x", "user#1", "u:1", "user::1", "user:1:", "{user}:1", "{user:1}:cart", "us{er:1}",
	))
	judge(t, "name_format", nil, names(Warning,
		"", "user", "user:", ":", ":user:1", "#a:b", "1user:1", "_user:1", "us-er:1", "us.er:1", "用户:1", "user 1:x", "{user}", "{}user:1", "a{}:1", "user{:1",
	))
	judge(t, "name_format", []OptionSpec{number("min_segments", 3)}, names(Healthy, "user:data:1", "{user:data}:1"))
	judge(t, "name_format", []OptionSpec{number("min_segments", 3)}, names(Warning, "user:1", "user::1", "user:data:"))
}

func TestNameTooLong(t *testing.T) {
	judge(t, "name_too_long", nil, names(Healthy, "", "u:"+strings.Repeat("a", 42)))
	judge(t, "name_too_long", nil, names(Warning, "u:"+strings.Repeat("a", 43), "u:"+strings.Repeat("单", 15)))
}

func TestNameOversized(t *testing.T) {
	judge(t, "name_oversized", nil, names(Healthy, "u:1", strings.Repeat("a", 16384)))
	cut := named(strings.Repeat("a", 16384))
	cut.NameBytes = 16385
	judge(t, "name_oversized", nil, []judgement{{"one byte more", cut, Warning}})
}

func TestNameSpecialChar(t *testing.T) {
	judge(t, "name_special_char", nil, names(Healthy,
		"", "user:1", "a-b.c+d=e{f}#g@h!", "订单:1", "ü:1", "a\u200bb", "\ufffd",
	))
	judge(t, "name_special_char", nil, names(Warning,
		"a b", "a\tb", "a\nb", "a\x00b", "a\x7fb", "a'b", `a"b`, `a\b`, "a\u00a0b", "a\u2003b", "a\u3000b", "a\u0085b", "a\u0090b", "a\xff", "\xc3", "\xed\xa0\x80",
	))
	cut := named(strings.Repeat("a", 16383) + "\xe5")
	judge(t, "name_special_char", nil, []judgement{{"half a character at the end of a whole name", cut, Warning}})
	cut.NameBytes = 16386
	judge(t, "name_special_char", nil, []judgement{{"half a character at our own cut", cut, Healthy}})
}

func TestNameDiscouragedSeparator(t *testing.T) {
	judge(t, "name_discouraged_separator", nil, names(Healthy,
		"", "user:1", "user_data:1", "a:-5", "a:3.14", "a:+1",
		"a:550e8400-e29b-41d4-a716-446655440000", "a:2024-01-02", "a:2024.01.02", "a:02-01-2024", "a:2024-01",
		"a:2024-01-02T10:30", "a:10.0.0.1", "a:jo-e.x+y@mail-x.example.com",
		"{a-b}:1", "{a-b:c-d}:1", "x:{a.b}",
	))
	judge(t, "name_discouraged_separator", nil, names(Warning,
		"user-data:1", "a.b", "a:b+c", "a:k=v", "a:v1.2", "a:b-1", "{a}-b:1", "a-{b}", "a{}-b",
		"a:550e8400-e29b-41d4-a716-44665544000g", "a:2024-1-2", "a:10.0.0", "a:10.0.0.1.2", "a:1000.0.0.1", "a:1.2.3", "a:x-y@", "a:@x-y", "a:-", "a:1.", "a:2024-01.02",
	))
}

func TestNameUnknownPrefix(t *testing.T) {
	judge(t, "name_unknown_prefix", nil, names(Healthy, "anything:1", ""))
	prefixes := []OptionSpec{list("allowed_prefixes", "order", "ugc")}
	judge(t, "name_unknown_prefix", prefixes, names(Healthy, "order:1", "ugc#1", "{order}:1", "{order:1}:x", "or{der}:1", "order"))
	judge(t, "name_unknown_prefix", prefixes, names(Warning, "", "orders:1", "Order:1", ":order", "x:order", "{}order:1", strings.Repeat("order", 20)+":1"))
}

func TestIsIDLike(t *testing.T) {
	for segment, want := range map[string]bool{
		"0": true, "-12": true, "1.5": true, "deadbeef": false, "deadbee1": true, "dead1": false, "cafe0123": true, "CAFE0123": true,
		"": false, "-": false, "1.": false, "abc": false, "2024-13": true, "a@b": true, "@b": false, "a@b c": false, "255.1.1.1": true,
	} {
		if got := isIDLike(segment); got != want {
			t.Errorf("isIDLike(%q) = %v", segment, got)
		}
	}
}

func TestBigString(t *testing.T) {
	table := []judgement{
		{"at the warning limit", sized(keyspace.String, 12<<10, 10240, time.Hour), Healthy},
		{"above it", sized(keyspace.String, 12<<10, 10241, time.Hour), Warning},
		{"below critical", sized(keyspace.String, 6<<20, 5<<20-1, time.Hour), Warning},
		{"critical", sized(keyspace.String, 6<<20, 5<<20, time.Hour), Critical},
		{"no string", sized(keyspace.List, 6<<20, 5<<20, time.Hour), Healthy},
	}
	judge(t, "big_string", nil, table)
}

func TestManyElements(t *testing.T) {
	for _, typ := range []keyspace.Type{keyspace.Hash, keyspace.List, keyspace.Set, keyspace.ZSet, keyspace.Stream} {
		judge(t, "many_elements", nil, []judgement{
			{typ.String(), sized(typ, 1<<20, 1000, time.Hour), Healthy},
			{typ.String(), sized(typ, 1<<20, 1001, time.Hour), Warning},
			{typ.String(), sized(typ, 1<<20, 9_999, time.Hour), Warning},
			{typ.String(), sized(typ, 1<<20, 10_000, time.Hour), Critical},
		})
	}
	judge(t, "many_elements", nil, []judgement{{"a string's bytes are no elements", sized(keyspace.String, 1<<20, 10_000, time.Hour), Healthy}})
}

func TestBigCollection(t *testing.T) {
	for _, typ := range []keyspace.Type{keyspace.Hash, keyspace.List, keyspace.Set, keyspace.ZSet, keyspace.Stream, keyspace.Module} {
		judge(t, "big_collection", nil, []judgement{
			{typ.String(), sized(typ, 1<<20, 10, time.Hour), Healthy},
			{typ.String(), sized(typ, 1<<20+1, 10, time.Hour), Warning},
			{typ.String(), sized(typ, 100<<20-1, 10, time.Hour), Warning},
			{typ.String(), sized(typ, 100<<20, 10, time.Hour), Critical},
		})
	}
	judge(t, "big_collection", nil, []judgement{
		{"no collection", sized(keyspace.String, 100<<20, 10, time.Hour), Healthy},
		{"may not be asked", sized(keyspace.Unknown, 100<<20, 10, time.Hour), Healthy},
	})
}

func TestBigElement(t *testing.T) {
	for _, typ := range []keyspace.Type{keyspace.Hash, keyspace.List, keyspace.Set, keyspace.ZSet} {
		judge(t, "big_element", nil, []judgement{
			{typ.String(), sized(typ, 10*4096, 10, time.Hour), Healthy},
			{typ.String(), sized(typ, 10*4096+1, 10, time.Hour), Warning},
			{typ.String(), sized(typ, 10*65536-1, 10, time.Hour), Warning},
			{typ.String(), sized(typ, 10*65536, 10, time.Hour), Critical},
			{typ.String(), sized(typ, 1<<20, 0, time.Hour), Healthy},
			{typ.String(), sized(typ, 4097, 1, time.Hour), Warning},
		})
	}
	judge(t, "big_element", nil, []judgement{
		{"a stream's node is preallocated", sized(keyspace.Stream, 5000, 1, time.Hour), Healthy},
		{"a string has no elements", sized(keyspace.String, 5000, 1, time.Hour), Healthy},
	})
}

func TestTTLMissing(t *testing.T) {
	judge(t, "ttl_missing", nil, []judgement{
		{"no TTL", sized(keyspace.String, 1, 1, keyspace.NoTTL), Warning},
		{"about to expire", sized(keyspace.String, 1, 1, 0), Healthy},
		{"long", sized(keyspace.String, 1, 1, 365*day), Healthy},
	})
}

func TestTTLTooLong(t *testing.T) {
	judge(t, "ttl_too_long", nil, []judgement{
		{"no TTL", sized(keyspace.String, 1, 1, keyspace.NoTTL), Healthy},
		{"30 days", sized(keyspace.String, 1, 1, 30*day), Healthy},
		{"more", sized(keyspace.String, 1, 1, 30*day+time.Millisecond), Warning},
	})
}

// detailed changes a key of which all is known.
func detailed(k keyspace.Key, change func(*keyspace.Key)) keyspace.Key {
	change(&k)
	return k
}

func TestLooseEncoding(t *testing.T) {
	hash := func(encoding keyspace.Encoding, fields int64) keyspace.Key {
		return detailed(sized(keyspace.Hash, 100_000, fields, time.Hour), func(k *keyspace.Key) { k.Encoding = encoding })
	}
	unknown := hash(keyspace.EncodingHashtable, 513)
	unknown.Known &^= keyspace.FactEncoding
	judge(t, "loose_encoding", nil, []judgement{
		{"512 fields", hash(keyspace.EncodingHashtable, 512), Healthy},
		{"513 fields", hash(keyspace.EncodingHashtable, 513), Warning},
		{"5000 fields", hash(keyspace.EncodingHashtable, 5000), Warning},
		{"5001 fields", hash(keyspace.EncodingHashtable, 5001), Healthy},
		{"a listpack", hash(keyspace.EncodingListpack, 600), Healthy},
		{"its encoding is not known", unknown, Healthy},
		{"a set", detailed(hash(keyspace.EncodingHashtable, 513), func(k *keyspace.Key) { k.Type = keyspace.Set }), Healthy},
	})
}

func TestJSONString(t *testing.T) {
	text := func(head byte, length int64) keyspace.Key {
		return detailed(sized(keyspace.String, length+60, length, time.Hour), func(k *keyspace.Key) { k.Head = head })
	}
	unknown := text('{', 2000)
	unknown.Known &^= keyspace.FactHead
	judgeBy(t, mustNew(t, enabled("json_string")), "json_string", []judgement{
		{"an object", text('{', 1025), Warning},
		{"a list", text('[', 1025), Warning},
		{"short", text('{', 1024), Healthy},
		{"text", text('x', 2000), Healthy},
		{"its value is not known", unknown, Healthy},
	})
	judge(t, "json_string", nil, []judgement{{"not enabled", text('{', 2000), Healthy}})
}

func TestHotKey(t *testing.T) {
	counted := func(n uint8) keyspace.Key {
		return detailed(sized(keyspace.String, 100, 10, time.Hour), func(k *keyspace.Key) { k.Frequency = n })
	}
	unknown := counted(255)
	unknown.Known &^= keyspace.FactFrequency
	judge(t, "hot_key", nil, []judgement{
		{"199", counted(199), Healthy},
		{"200", counted(200), Warning},
		{"255", counted(255), Warning},
		{"its counter is not known", unknown, Healthy},
	})
}

func TestHotAndBig(t *testing.T) {
	key := func(n uint8, length int64) keyspace.Key {
		return detailed(sized(keyspace.String, length, length, time.Hour), func(k *keyspace.Key) { k.Frequency = n })
	}
	unknown := key(200, 10_241)
	unknown.Known &^= keyspace.FactLength
	judge(t, "hot_and_big", nil, []judgement{
		{"both", key(200, 10_241), Warning},
		{"critical", key(200, 5<<20), Warning},
		{"hot", key(200, 10_240), Healthy},
		{"big", key(199, 10_241), Healthy},
		{"hot, its size is not known", unknown, Healthy},
		{"a module's", detailed(sized(keyspace.Module, 2<<20, 0, time.Hour), func(k *keyspace.Key) { k.Frequency = 200 }), Warning},
	})
	judgeBy(t, mustNew(t, RuleSpec{ID: "hot_key", Options: []OptionSpec{number("least", 201)}}), "hot_and_big", []judgement{
		{"not hot by the rule for it", key(200, 10_241), Healthy},
		{"hot and big", key(201, 10_241), Warning},
	})
	judgeBy(t, mustNew(t, RuleSpec{ID: "big_string", Options: []OptionSpec{number("warning", 20_000)}}), "hot_and_big", []judgement{
		{"not big by the rule for it", key(200, 10_241), Healthy},
	})
}

func TestIdlePermanent(t *testing.T) {
	idle := func(d, ttl time.Duration) keyspace.Key {
		return detailed(sized(keyspace.String, 100, 10, ttl), func(k *keyspace.Key) { k.Idle = d })
	}
	unknown := idle(31*day, keyspace.NoTTL)
	unknown.Known &^= keyspace.FactIdle
	judge(t, "idle_permanent", nil, []judgement{
		{"30 days", idle(30*day, keyspace.NoTTL), Healthy},
		{"more", idle(30*day+time.Second, keyspace.NoTTL), Warning},
		{"it expires", idle(31*day, time.Hour), Healthy},
		{"its idle time is not known", unknown, Healthy},
	})
}

func TestTTLBigKey(t *testing.T) {
	unknown := sized(keyspace.Hash, 1<<20, 1001, time.Hour)
	unknown.Known &^= keyspace.FactTTL
	judge(t, "ttl_big_key", nil, []judgement{
		{"many elements", sized(keyspace.Hash, 1<<20, 1001, time.Hour), Warning},
		{"not so many", sized(keyspace.Hash, 1<<20, 1000, time.Hour), Healthy},
		{"a large list", sized(keyspace.List, 1<<20+1, 10, time.Hour), Warning},
		{"permanent", sized(keyspace.Hash, 1<<20, 1001, keyspace.NoTTL), Healthy},
		{"a large element alone", sized(keyspace.Hash, 80_000, 1, time.Hour), Healthy},
		{"a string", sized(keyspace.String, 10<<20, 10<<20, time.Hour), Healthy},
		{"its TTL is not known", unknown, Healthy},
	})
	p := mustNew(t)
	for setting, want := range map[Setting]uint64{Untold: 0, Off: 0, On: 1 << ruleIndex(t, p, "ttl_big_key")} {
		if got := p.Harmless(setting); got != want {
			t.Errorf("setting %v: harmless are %b, want %b", setting, got, want)
		}
	}
}

func TestTTLClustered(t *testing.T) {
	p := mustNew(t)
	rule, row := p.TTLClustered()
	if row != ruleIndex(t, p, "ttl_clustered") || *rule != (TTLClustered{Share: 0.1, Keys: 1000}) {
		t.Errorf("row %d, %+v", row, rule)
	}
	for _, tc := range []struct {
		keys, of float64
		want     bool
	}{
		{1000, 1000, false}, {1001, 1001, true}, {1001, 10_009, true}, {1001, 10_010, false}, {2000, 20_000, false}, {2000, 19_999, true},
	} {
		if got := rule.Clustered(tc.keys, tc.of); got != tc.want {
			t.Errorf("%v of %v: %v", tc.keys, tc.of, got)
		}
	}
	off := false
	p = mustNew(t, RuleSpec{ID: "ttl_clustered", Enabled: &off})
	if rule, row := p.TTLClustered(); rule != nil || p.Evaluated(keyspace.Available{}, Untold)[row] {
		t.Error("it is off, yet judged")
	}
}

// TestCombinersOfNamespaces: a rule that combines others goes by those of the
// key's namespace, and has nothing to say where they are exempt.
func TestCombinersOfNamespaces(t *testing.T) {
	p, err := New(Spec{Namespaces: []NamespaceSpec{
		{Name: "free", Match: []Pattern{{Text: "order:*"}}, Rules: []RuleSpec{{ID: "hot_key", Exempt: true, ApprovedBy: "review"}}},
		{Name: "other", Match: []Pattern{{Text: "other:*"}}, Rules: []RuleSpec{{ID: "big_string", Exempt: true, ApprovedBy: "review"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	rule := ruleIndex(t, p, "hot_and_big")
	k := detailed(sized(keyspace.String, 20_000, 10_241, time.Hour), func(k *keyspace.Key) { k.Frequency = 255 })
	for name, want := range map[string]bool{"order:1": false, "other:1": false, "third:1": true} {
		k.Name = name
		if v := p.Check(&k); broken(v, rule) != want {
			t.Errorf("%s: broken = %v", name, !want)
		}
	}
	if p.Judges(1, rule) || !p.Judges(2, rule) || !p.Judges(0, rule) {
		t.Error("judged where there is nothing to combine, or not where there is")
	}
	var all keyspace.Available
	for t := range all {
		all[t] = allFacts
	}
	if !p.Evaluated(all, Untold)[rule] {
		t.Error("not evaluated")
	}
}
