package keyspace

// Type is a Redis data type as a closed set: modules add type names without
// bound, so each of theirs is Module.
type Type uint8

// The types. Unknown is a key whose type may not be asked for.
const (
	Unknown Type = iota
	String
	Hash
	List
	Set
	ZSet
	Stream
	Module
	NumTypes = iota
)

var typeNames = [NumTypes]string{"unknown", "string", "hash", "list", "set", "zset", "stream", "module"}

// String is the value of the label key_type.
func (t Type) String() string { return typeNames[t] }

// ParseType reads the reply of TYPE; what it does not know is a Module's.
// "none" (no such key) is not a type: the caller handles it first.
func ParseType(reply string) Type {
	for t := String; t < Module; t++ {
		if reply == typeNames[t] {
			return t
		}
	}
	return Module
}

// Collection tells whether the type holds elements that can be counted.
func (t Type) Collection() bool { return t >= Hash && t <= Stream }

// Types lists every type, in the order of the constants.
func Types() []Type {
	all := make([]Type, NumTypes)
	for i := range all {
		all[i] = Type(i)
	}
	return all
}
