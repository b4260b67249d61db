package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	vcs := func(revision, modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}
	}
	const hash = "0123456789abcdef0123456789abcdef01234567"
	tests := []struct {
		module   string
		settings []debug.BuildSetting
		want     string
	}{
		{"v0.1.0", nil, "0.1.0"},
		{"v0.1.0", vcs(hash, "true"), "0.1.0"},
		{"v0.0.0-20260102030405-0123456789ab+dirty", nil, "0.0.0-20260102030405-0123456789ab+dirty"},
		{"(devel)", nil, "devel"},
		{"", nil, "devel"},
		{"(devel)", vcs(hash, "false"), "0123456789ab"},
		{"", vcs(hash, "true"), "0123456789ab-dirty"},
		{"", vcs("abc", "false"), "abc"},
		{"", vcs("", "true"), "devel"},
	}
	for _, test := range tests {
		info := &debug.BuildInfo{Main: debug.Module{Version: test.module}, Settings: test.settings}
		if got := versionOf(info); got != test.want {
			t.Errorf("versionOf(%q, %v) = %q, want %q", test.module, test.settings, got, test.want)
		}
	}
}

func TestProgramVersion(t *testing.T) {
	old := version
	defer func() { version = old }()
	for _, test := range []struct{ set, want string }{
		{"0.1.0", "0.1.0"},
		{"v0.1.0", "0.1.0"},
		{"vnext", "vnext"},
		{"v", "v"},
	} {
		version = test.set
		if got := programVersion(); got != test.want {
			t.Errorf("version %q: %q, want %q", test.set, got, test.want)
		}
	}
	version = ""
	if got := programVersion(); got == "" || strings.ContainsAny(got, " \n") {
		t.Errorf("without a set version: %q", got)
	}
	version = "9.8.7"
	var out strings.Builder
	if err := writeVersion(&out); err != nil || out.String() != "wireguardrun 9.8.7\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
