package config

// Log are the --log.* flags.
type Log struct {
	Level  string // debug, info, warn, error
	Format string // logfmt, json
}
