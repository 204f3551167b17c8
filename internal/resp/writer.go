// Package resp is the smallest part of the Redis protocol that a walk needs: it
// writes commands and reads their replies without an allocation per key. What is
// rare stays with the client library.
package resp

import "strconv"

// Writer gathers commands into one pipeline. Its buffer is reused.
type Writer struct {
	buf      []byte
	commands int
}

// Reset starts a new pipeline.
func (w *Writer) Reset() { w.buf, w.commands = w.buf[:0], 0 }

// Len is the number of commands gathered.
func (w *Writer) Len() int { return w.commands }

// Bytes is the pipeline, valid until the next call.
func (w *Writer) Bytes() []byte { return w.buf }

// Command appends a command of bulk strings.
func (w *Writer) Command(words ...string) {
	w.commands++
	w.header('*', len(words))
	for _, word := range words {
		w.bulk(word)
	}
}

// KeyCommand is a command that lacks one word, the key: as its bytes, since the
// same few are sent for each key.
type KeyCommand struct{ front, behind []byte }

// NewKeyCommand encodes the words in front of the key and behind it.
func NewKeyCommand(front []string, behind ...string) KeyCommand {
	encode := func(w *Writer, words []string) []byte {
		for _, word := range words {
			w.bulk(word)
		}
		return w.buf
	}
	var head, tail Writer
	head.header('*', len(front)+1+len(behind))
	return KeyCommand{encode(&head, front), encode(&tail, behind)}
}

// Key appends a command about a key.
func (w *Writer) Key(c KeyCommand, name string) {
	w.commands++
	w.buf = append(w.buf, c.front...)
	w.bulk(name)
	w.buf = append(w.buf, c.behind...)
}

func (w *Writer) bulk(word string) {
	w.header('$', len(word))
	w.buf = append(w.buf, word...)
	w.buf = append(w.buf, '\r', '\n')
}

func (w *Writer) header(kind byte, n int) {
	w.buf = append(w.buf, kind)
	w.buf = strconv.AppendInt(w.buf, int64(n), 10)
	w.buf = append(w.buf, '\r', '\n')
}
