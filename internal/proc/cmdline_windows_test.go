package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIsBatch(t *testing.T) {
	for path, want := range map[string]bool{
		`C:\x.bat`: true, `C:\x.CMD`: true, `x.bat. .`: true, `x.cmd `: true,
		`C:\x.exe`: false, `C:\x.bat\y`: false, `x`: false, `x.batch`: false,
	} {
		if got := isBatch(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestLongPath(t *testing.T) {
	long := strings.Repeat(`\folder`, 40)
	for path, want := range map[string]string{
		`C:\x.exe`:          `C:\x.exe`,
		`C:` + long:         `\\?\C:` + long,
		`\\server\x` + long: `\\?\UNC\server\x` + long,
		`\\?\C:` + long:     `\\?\C:` + long,
	} {
		if got := longPath(path); got != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}

func TestBatchLine(t *testing.T) {
	const prefix = `cmd.exe /e:ON /v:OFF /d /c ""C:\a b\x.cmd"`
	for _, test := range []struct {
		arg, want string
	}{
		{`plain`, `plain`},
		{`--flag=value`, `"--flag=value"`},
		{`a/b.c:d@e_f-g#h$i*j+k?l`, `a/b.c:d@e_f-g#h$i*j+k?l`},
		{`a\b`, `a\b`},
		{`ünï`, `ünï`},
		{``, `""`},
		{`a b`, `"a b"`},
		{`x&calc`, `"x&calc"`},
		{`a|b<c>d^e(f)`, `"a|b<c>d^e(f)"`},
		{`a,b;c=d!e`, `"a,b;c=d!e"`},
		{`C:\dir\`, `"C:\dir\\"`},
		{`"`, `""""`},
		{`"&calc`, `"""&calc"`},
		{`a\"b`, `"a\\""b"`},
		{`a\\" b\`, `"a\\\\"" b\\"`},
		{`100%`, `"100%%cd:~,%"`},
		{`%PATH%`, `"%%cd:~,%PATH%%cd:~,%"`},
	} {
		got, err := batchLine(`C:\a b\x.cmd`, []string{test.arg})
		if want := prefix + " " + test.want + `"`; got != want || err != nil {
			t.Errorf("%q:\n%s, %v, want\n%s", test.arg, got, err, want)
		}
	}
	got, err := batchLine(`C:\50%\x.cmd`, nil)
	if want := `cmd.exe /e:ON /v:OFF /d /c ""C:\50%%cd:~,%\x.cmd""`; got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestBatchLineRefused(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		args   []string
		want   error
	}{
		"CR":             {`x.cmd`, []string{"a", "b\rc"}, errBatchCharacter},
		"LF":             {`x.cmd`, []string{"b\nc"}, errBatchCharacter},
		"NUL":            {`x.cmd`, []string{"b\x00c"}, errBatchCharacter},
		"quote in path":  {`a".cmd`, nil, errBatchPath},
		"backslash":      {`x.cmd\`, nil, errBatchPath},
		"line in path":   {"a\n.cmd", nil, errBatchPath},
		"long":           {`x.cmd`, []string{strings.Repeat("a", maxBatchLine)}, errBatchLength},
		"long with many": {`x.cmd`, []string{strings.Repeat("%", maxBatchLine/8)}, errBatchLength},
	} {
		if line, err := batchLine(test.script, test.args); !errors.Is(err, test.want) {
			t.Errorf("%s: %.60q, %v", name, line, err)
		}
	}
	// As long as it may be.
	line, err := batchLine(`x.cmd`, []string{strings.Repeat("a", maxBatchLine-len(`cmd.exe /e:ON /v:OFF /d /c ""x.cmd" "`))})
	if err != nil || len(line) != maxBatchLine {
		t.Errorf("%d characters, %v", len(line), err)
	}
}

// FuzzBatchLine checks by a model of cmd.exe, which toggles quotes and looks
// for special characters outside of them, that nothing gets out.
func FuzzBatchLine(f *testing.F) {
	for _, arg := range append(oddArguments, `"&calc&"`, `\"&calc`, `""&calc`, `^"&calc`, `%CMDCMDLINE:~-1%&calc`) {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		line, err := batchLine(`C:\x.cmd`, []string{arg, "end"})
		if err != nil {
			return
		}
		body := strings.TrimPrefix(line, `cmd.exe /e:ON /v:OFF /d /c "`)
		if body == line || !strings.HasSuffix(body, `"`) {
			t.Fatalf("the command line is %q, want cmd.exe with one quoted command", line)
		}
		body = strings.ReplaceAll(body[:len(body)-1], `%%cd:~,%`, "P")
		if strings.Contains(body, "%") {
			t.Errorf("%q has a percent sign: %q", arg, line)
		}
		quoted := false
		for i, c := range body {
			switch {
			case c == '"':
				quoted = !quoted
			case !quoted && strings.ContainsRune("&|<>^()!,;=\t\v\f", c):
				t.Errorf("%q leaves %q outside of quotes at %d of %q", arg, c, i, body)
			}
		}
		if quoted || !strings.HasSuffix(body, " end") {
			t.Errorf("%q leaves the line open: %q", arg, body)
		}
	})
}

// Wine's cmd.exe doesn't know the trick with percent signs, and is no evidence
// for the real one; the rest has to hold in both.
func TestBatchFile(t *testing.T) {
	script := filepath.Join(t.TempDir(), "a script.cmd")
	content := "@\"" + self(t) + "\" %*\r\n"
	if err := os.WriteFile(script, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"plain", "a b", "x&echo.INJECTED", "z|more", "a^b", "<c>", "(d)", "e,f;g=h", `C:\dir\`, "ünï", ""}
	c := asRole(t, "print", args...)
	c.Path = script
	want := strings.Join(args, "|")
	if got, status := launchBounded(t, c).end(); got != want || status != (Status{}) {
		t.Errorf("the program got %q, status %v, want %q", got, status, want)
	}
}

func TestBatchFileExitStatus(t *testing.T) {
	script := filepath.Join(t.TempDir(), "x.bat")
	if err := os.WriteFile(script, []byte("@exit /b 77\r\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := asRole(t, "")
	c.Path = script
	if _, got := launchBounded(t, c).end(); got != (Status{Code: 77}) {
		t.Errorf("status %v", got)
	}
}
