// Package state carries what the scan remembers over a restart of the exporter.
package state

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/version"

	"redis_keyhealth_exporter/internal/bigkeys"
	"redis_keyhealth_exporter/internal/keyspace"
	"redis_keyhealth_exporter/internal/policy"
	"redis_keyhealth_exporter/internal/snapshot"
)

const (
	// magic begins the file; another version of the format is another magic.
	magic = "redis_keyhealth_exporter state 1\n"

	// maxBytes bounds a file: 100,000 keys take a tenth of it.
	maxBytes = 128 << 20
)

// ErrCorrupt is a file that is none of ours, or not whole.
var ErrCorrupt = errors.New("the state file is corrupt or not of this program's")

// State is the content of the file.
type State struct {
	Target  string
	BigKeys *bigkeys.State
	Program string // that wrote the snapshots; another one does not read them
	Nodes   []Node
}

// Node is what the last cycle of a node left.
type Node struct {
	Address  string // that is dialled
	ID       keyspace.NodeID
	Class    int           // of the next cycle, see --scan.sample
	Duration time.Duration // of the last cycle
	New      bigkeys.Counts
	Resolved bigkeys.Counts
	Snapshot *snapshot.Snapshot
	Touches  []Touch
}

// Touch is a key that a length command of ours touched, times in Unix seconds.
type Touch struct {
	DB           int
	Hash         uint64
	At, Accessed int64 // by us; before that by anybody else
}

// Node finds what is remembered of the node at an address, or else of the shard
// that it is of: which of its servers is scanned may have changed. nil = nothing.
func (s *State) Node(address string, id keyspace.NodeID) *Node {
	for _, same := range []func(*Node) bool{
		func(n *Node) bool { return n.Address == address },
		func(n *Node) bool { return n.ID == id },
	} {
		for i := range s.Nodes {
			if same(&s.Nodes[i]) {
				return &s.Nodes[i]
			}
		}
	}
	return nil
}

// program tells programs apart whose snapshots mean different things: a snapshot
// refers to the rulebook by row.
func program() string {
	id := version.Version + " " + version.GetRevision()
	for _, r := range policy.Rules() {
		id += " " + r.ID
	}
	return id
}

// Save replaces the file at once or not at all: whoever reads it meanwhile, or
// after a crash, finds the old one or the new one, whole. Only its owner may
// read it: names of keys are in it.
func Save(path string, s *State) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	stamped := *s
	stamped.Program = program()
	out, sum := bufio.NewWriter(file), sha256.New()
	_, err = out.WriteString(magic)
	err = errors.Join(err, gob.NewEncoder(io.MultiWriter(out, sum)).Encode(&stamped))
	_, failed := out.Write(sum.Sum(nil))
	if err = errors.Join(err, failed, out.Flush(), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// Load reads the file; nil = there is none. A file that is ErrCorrupt, or of
// another target, is set aside under the name of path and ".corrupt", and the
// error says so.
func Load(path, target string) (*State, error) {
	content, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := decode(content)
	if err == nil && s.Target != target {
		err = fmt.Errorf("%w: it is of target %q", ErrCorrupt, s.Target)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w, set aside as .corrupt", path, err), os.Rename(path, path+".corrupt"))
	}
	return s, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBytes {
		return nil, fmt.Errorf("%s: is no regular file of at most %d bytes", path, maxBytes)
	}
	return os.ReadFile(path)
}

// decode believes nothing before the checksum holds: gob may allocate what a
// flipped length asks for.
func decode(content []byte) (*State, error) {
	rest, ours := bytes.CutPrefix(content, []byte(magic))
	if !ours || len(rest) < sha256.Size {
		return nil, ErrCorrupt
	}
	rest, sum := rest[:len(rest)-sha256.Size], rest[len(rest)-sha256.Size:]
	if is := sha256.Sum256(rest); !bytes.Equal(is[:], sum) {
		return nil, ErrCorrupt
	}
	s := &State{}
	if err := gob.NewDecoder(bytes.NewReader(rest)).Decode(s); err != nil || s.BigKeys == nil {
		return nil, ErrCorrupt
	}
	if s.Program != program() {
		for i := range s.Nodes {
			s.Nodes[i].Snapshot = nil
		}
	}
	return s, nil
}
