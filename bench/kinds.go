//go:build linux

package main

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed filters
var filters embed.FS

// kind is a way to start a server that is compared.
type kind struct {
	name   string
	prefix []string // the wrapper, before the server's arguments
	behind []string // a filter that only reads what the server writes
	wire   string   // which descriptors the server uses, see serverWire
}

const (
	bare   = "bare pipes"
	copier = "plain copy in Go"
)

// signalWrappers are wrappers that pass signals on and stay out of the path.
var signalWrappers = [][]string{{"tini", "-s", "--"}, {"dumb-init"}, {"catatonit", "--"}}

// compared sets t.kinds to what is installed and has only in its name; absent are
// the names of what is not installed.
func (t *tools) compared(only string) (absent []string, err error) {
	entries, err := filters.ReadDir("filters")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := filters.ReadFile("filters/" + e.Name())
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(t.dir, e.Name()), text, 0o600); err != nil {
			return nil, err
		}
	}
	kinds := []kind{
		{name: bare, wire: wireStandard},
		{name: copier, prefix: []string{t.floor("copier")}, wire: wireStandard},
		{name: "--wire=fds", prefix: []string{t.guard, "--wire=fds", "--"}, wire: wireHanded},
		{name: "--wire=auto, aware server", prefix: []string{t.guard, "--wire=auto", "--"}, wire: wireAnnounced},
		{name: "--wire=auto, unmodified server", prefix: []string{t.guard, "--wire=auto", "--"}, wire: wireStandard},
		{name: "--wire=stdio", prefix: []string{t.guard, "--wire=stdio", "--"}, wire: wireStandard},
		{name: "Node filter", prefix: []string{"node", filepath.Join(t.dir, "filter.mjs")}, wire: wireStandard},
		{name: "Python filter", prefix: []string{"python3", filepath.Join(t.dir, "filter.py")}, wire: wireStandard},
		{name: "grep --line-buffered", behind: []string{"grep", "--line-buffered", "^{"}, wire: wireStandard},
		{name: "cleanpipe", prefix: []string{"cleanpipe", "--quiet", "--"}, wire: wireStandard},
		{name: "mcpsnoop", prefix: []string{"mcpsnoop", "--"}, wire: wireStandard},
	}
	for _, k := range kinds {
		for _, argv := range [][]string{k.prefix, k.behind} {
			if len(argv) == 0 {
				continue
			}
			program, err := exec.LookPath(argv[0])
			if err != nil {
				absent = append(absent, k.name)
				k.name = ""
				break
			}
			argv[0] = program
		}
		// The first two are what all are compared with.
		if k.name != "" && (strings.Contains(k.name, only) || k.name == bare || k.name == copier) {
			t.kinds = append(t.kinds, k)
		}
	}
	return absent, nil
}

// server is the argument vector of a server role, as k starts it.
func (t tools) server(k kind, role ...string) []string {
	return slices.Concat(k.prefix, []string{t.self, roleWord, k.wire}, role)
}
