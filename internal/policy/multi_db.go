package policy

// MultiDB finds servers that use more than one database.
type MultiDB struct{}

// CheckServer counts the databases that hold keys.
func (MultiDB) CheckServer(f *ServerFacts) (violated, known bool) { return f.DBs > 1, true }
