package proc

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/windows"
)

func TestLook(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		`first\tool.cmd`, `second\tool.exe`, `second\only.exe`, `second\only`, `second\script.js`,
		`second\odd.name.exe`, `second\dir.exe\x`, `cwd\here.exe`, `cwd\sub\local.bat`, `cwd\rel\rel.com`,
		`cwd\plain`, `second\py.PYW`, `third space\spaced tool.exe`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(root, name) }
	path := strings.Join([]string{"", at("first"), at("missing"), at("second"), `"` + at("third space") + `"`, "rel"}, ";")
	for _, test := range []struct {
		name string
		want string // below root
		err  error
	}{
		{name: "tool", want: `first\tool.cmd`}, // PATH comes before PATHEXT
		{name: "tool.exe", want: `second\tool.exe`},
		{name: "TOOL", want: `first\TOOL.CMD`},
		{name: "only", want: `second\only.exe`},
		{name: "script.js", want: `second\script.js`},
		{name: "odd.name", want: `second\odd.name.exe`},
		{name: "spaced tool", want: `third space\spaced tool.exe`},
		{name: "rel", want: `cwd\rel\rel.com`}, // PATH may have relative elements
		{name: `sub\local`, want: `cwd\sub\local.bat`},
		{name: `.\here`, want: `cwd\here.exe`},
		{name: `sub/local.bat`, want: `cwd\sub\local.bat`},
		{name: at(`second\only`), want: `second\only.exe`},
		{name: "here", err: exec.ErrDot},
		{name: "py", err: ErrNotFound}, // not in PATHEXT
		{name: "nowhere", err: ErrNotFound},
		{name: "", err: ErrNotFound},
		{name: ".", err: ErrNotFound},
		{name: "dir.exe", err: syscall.EISDIR},
		{name: `sub\missing`, err: fs.ErrNotExist},
		{name: `sub`, err: ErrNotFound},
		{name: `.\sub`, err: syscall.EISDIR},
		{name: `.\plain`, want: `cwd\plain`},
		{name: "plain", err: ErrNotFound},
		{name: "a\x00b", err: windows.ERROR_INVALID_NAME},
	} {
		env := []string{"path=" + path, "PathExt=.COM;.EXE;BAT;.CMD"}
		got, err := Look(test.name, at("cwd"), env)
		if !errors.Is(err, test.err) || err != nil && got != "" {
			t.Errorf("%q: %q, %v, want %v", test.name, got, err, test.err)
		}
		if test.err == nil && !strings.EqualFold(got, at(test.want)) {
			t.Errorf("%q: %q, want %q", test.name, got, at(test.want))
		}
	}
}

func TestLookWithoutVariables(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.cmd"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Look("x", "", []string{"PATH=" + dir}); !strings.EqualFold(got, filepath.Join(dir, "x.cmd")) || err != nil {
		t.Errorf("without PATHEXT: %q, %v", got, err)
	}
	if got, err := Look("x", "", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("without PATH: %q, %v", got, err)
	}
}

func TestEnvironmentNamesHaveNoCase(t *testing.T) {
	got := Environ([]string{"Path=a", `=C:=C:\x`, "X=1"}, []string{"PATH=b", "x=2"})
	if want := []string{"PATH=b", `=C:=C:\x`, "x=2"}; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", got, want)
	}
}
