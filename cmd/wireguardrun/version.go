package main

import (
	"io"
	"runtime/debug"
	"strings"
)

// version is set by the release build: -ldflags "-X main.version=0.1.0".
var version string

// programVersion is the version without a "v": the one set at link time, else
// that of the module, else the commit, else "devel".
func programVersion() string {
	if version != "" {
		return trimV(version)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return versionOf(info)
}

// versionOf is the version that a build's own record tells.
func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return trimV(v)
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision + dirty
}

// trimV turns v1.2.3 into 1.2.3.
func trimV(v string) string {
	if rest, ok := strings.CutPrefix(v, "v"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		return rest
	}
	return v
}

// writeVersion answers --version and the version command.
func writeVersion(stdout io.Writer) error {
	return write(stdout, "wireguardrun "+programVersion()+"\n")
}
