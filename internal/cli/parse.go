package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

var errArgument = errors.New("unexpected argument: settings are flags, such as --redis.addr=host:port; see --help")

// done stands for the exit that kingpin asks for.
type done struct{ status int }

// parse fills in the flags and returns the command; "" = --help or --version was
// all.
func parse(app *kingpin.Application, args []string) (command string, err error) {
	// kingpin reads arguments from a file where one begins with @: here an address
	// or a password may begin so, and what it reads ends up in errors. The setting
	// is kingpin's own and global.
	kingpin.EnableFileExpansion = false
	// kingpin counts on the exit: it goes on with a half parsed line otherwise.
	app.Terminate(func(status int) { panic(done{status}) })
	defer func() {
		switch p := recover(); p {
		case nil, done{exitOK}:
		case done{1}: // of "help" for what there is not
			err = errArgument
		default:
			panic(p)
		}
	}()
	// The default command is not kingpin's Default(): that forgets the first
	// error of a line, so that a flag at its end goes without the value.
	line, err := app.ParseContext(args)
	if err == nil && line.SelectedCommand == nil && !asksHelp(app, line) {
		args = append(slices.Clone(args), defaultCommand)
	}
	command, err = app.Parse(args)
	return command, plain(err)
}

func asksHelp(app *kingpin.Application, line *kingpin.ParseContext) bool {
	return slices.ContainsFunc(line.Elements, func(e *kingpin.ParseElement) bool { return e.Clause == app.HelpFlag })
}

// plain words kingpin's errors anew that repeat what was not understood: what is
// most often forgotten is the name of the flag before an address, and that may
// hold a password.
func plain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if strings.HasPrefix(text, "unexpected ") || strings.HasPrefix(text, "expected command") {
		return errArgument
	}
	if name, ok := strings.CutPrefix(text, "unknown long flag '"); ok {
		if end := strings.IndexFunc(name, func(c rune) bool { return !strings.ContainsRune(flagCharacters, c) }); end >= 0 {
			name = name[:end]
		}
		return fmt.Errorf("unknown flag %s; see --help", name)
	}
	if strings.HasPrefix(text, "unknown short flag") {
		return fmt.Errorf("%s: names of flags begin with two dashes; see --help", text)
	}
	return fmt.Errorf("%w; see --help", err)
}

const flagCharacters = "abcdefghijklmnopqrstuvwxyz0123456789.-"

// named makes the errors of a flag's value name the flag, which kingpin's own
// leave out.
type named struct {
	kingpin.Value
	flag string
}

func (v named) Set(s string) error {
	err := v.Value.Set(s)
	kind := ""
	switch v.Value.(kingpin.Getter).Get().(type) {
	case int:
		kind = "whole number"
		_, err = strconv.Atoi(s) // kingpin takes 1.9 for 1, and NaN for anything
	case float64:
		kind = "number"
	case bool:
		kind = "true or false"
	case time.Duration:
		kind = "duration such as 90s or 5m"
	}
	switch {
	case err == nil:
		return nil
	case kind == "":
		return fmt.Errorf("--%s: %w", v.flag, err)
	}
	return fmt.Errorf("--%s: %q is no %s", v.flag, s, kind)
}

// IsBoolFlag tells kingpin that the flag takes no value.
func (v named) IsBoolFlag() bool {
	b, ok := v.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// IsCumulative tells kingpin that the flag may be repeated.
func (v named) IsCumulative() bool {
	c, ok := v.Value.(interface{ IsCumulative() bool })
	return ok && c.IsCumulative()
}

// envar is a flag's environment variable: --scan.max-duty is SCAN_MAX_DUTY.
func envar(flag string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(flag))
}

// blame makes an error that begins with the names of flags begin with those of
// their environment variables where these are what there is to mend.
func (f *flags) blame(err error) string {
	text := oneLine(err)
	head, rest, named := strings.Cut(text, ": ")
	if !named {
		return text
	}
	words := strings.Fields(head)
	for i, word := range words {
		name := strings.TrimPrefix(word, "--")
		if given, isFlag := f.given[name]; isFlag && !*given && os.Getenv(envar(name)) != "" {
			words[i] = envar(name) + " (" + word + ")"
		}
	}
	return strings.Join(words, " ") + ": " + rest
}

// oneLine keeps an error on one line, whatever library it comes from.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
