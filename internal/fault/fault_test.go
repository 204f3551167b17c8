package fault

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	seen := map[string]bool{}
	for r := range Reason(NumReasons) {
		if r.String() == "" || seen[r.String()] || r.Advice() == "" || r.Wait() < 0 {
			t.Errorf("reason %d: %q, advice %q, wait %v", r, r, r.Advice(), r.Wait())
		}
		seen[r.String()] = true
		if strings.HasSuffix(r.Advice(), ".") || strings.Contains(r.Advice(), "\n") {
			t.Errorf("%v: the advice is no part of a line: %q", r, r.Advice())
		}
	}
	seen = map[string]bool{}
	for p := NoProblem + 1; p < NumKeyProblems; p++ {
		if p.String() == "" || seen[p.String()] {
			t.Errorf("problem %d: %q", p, p)
		}
		seen[p.String()] = true
	}
}

func TestReasonOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want Reason
	}{
		{New(Auth, io.EOF), Auth},
		{fmt.Errorf("in a page: %w", Newf(TLS, "no: %w", io.EOF)), TLS},
		{io.EOF, Protocol}, // nobody classified it
	} {
		if got := ReasonOf(tc.err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
	if err := New(Down, io.EOF); !errors.Is(err, io.EOF) || err.Error() != "EOF" {
		t.Errorf("the cause is lost: %v", err)
	}
}
