package policy

import "strings"

// MixedBusiness finds instances that many businesses share.
type MixedBusiness struct {
	MaxBusinesses int
}

// CheckServer counts the businesses that are more than a few odd keys.
func (r *MixedBusiness) CheckServer(f *ServerFacts) (violated, known bool) {
	return f.Businesses > r.MaxBusinesses, true
}

// Business is the segment of a name that says whose key it is: the first one
// that is not id-like, without the braces of a hash tag. The last segment names
// the key itself. "" = the name tells no business. It does not allocate: what
// it returns is a piece of the name.
func Business(name string) string {
	for {
		end := 0
		for end < len(name) && !isSeparator(name[end]) {
			end++
		}
		if end == len(name) {
			return ""
		}
		segment := strings.Trim(name[:end], "{}")
		if segment != "" && !isIDLike(segment) {
			return segment
		}
		name = name[end+1:]
	}
}
