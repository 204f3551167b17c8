package keyspace

import "slices"

// Encoding is how Redis holds a value, by OBJECT ENCODING.
type Encoding uint8

// The encodings of Redis 2.8 to 8 and Valkey; of any other server or module,
// EncodingOther.
const (
	EncodingOther Encoding = iota
	EncodingRaw
	EncodingInt
	EncodingEmbstr
	EncodingListpack
	EncodingZiplist
	EncodingQuicklist
	EncodingLinkedlist
	EncodingHashtable
	EncodingIntset
	EncodingSkiplist
	EncodingStream
	NumEncodings = iota
)

var encodingNames = []string{
	"other", "raw", "int", "embstr", "listpack", "ziplist",
	"quicklist", "linkedlist", "hashtable", "intset", "skiplist", "stream",
}

// String is the label `encoding`, spelled as Redis does.
func (e Encoding) String() string { return encodingNames[e] }

// ParseEncoding reads a reply of OBJECT ENCODING.
func ParseEncoding(s string) Encoding { return Encoding(max(slices.Index(encodingNames, s), 0)) }
