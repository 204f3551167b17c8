package config

import (
	"fmt"
	"io"
)

// hidden is what is shown in place of a secret.
const hidden = "<secret>"

// Secret is text that never prints.
//
// fmt asks no method of a value that it finds in an unexported field: a struct
// keeps a secret there behind a pointer, of which fmt shows the address.
type Secret string

// Format hides the secret from every verb of fmt, those included that make no
// sense for text.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// String hides the secret from loggers.
func (Secret) String() string { return hidden }

// MarshalText hides the secret from loggers, JSON and YAML.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
