package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cServers are programs made from testdata/windows/server.c: prebuilt under
// Wine, where no compiler runs, one for each C runtime, else made here with
// the one that the compiler has.
func cServers(t *testing.T) []string {
	t.Helper()
	if list := os.Getenv("WGR_C_SERVERS"); list != "" {
		return filepath.SplitList(list)
	}
	server := filepath.Join(t.TempDir(), "server.exe")
	cmd := exec.Command(needs(t, "gcc"), "-o", server, filepath.Join("testdata", "windows", "server.c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{server}
}

// A server in C finds the handed-down descriptors by their numbers; one that
// knows of none speaks in text mode, and its line ends are put right.
func TestCServer(t *testing.T) {
	for _, path := range cServers(t) {
		for _, tt := range []struct{ wire, speaks string }{
			{"fds", "fds"}, {"auto", "fds"}, {"auto", "stdio"}, {"stdio", "stdio"},
		} {
			t.Run(filepath.Base(path)+"/"+tt.wire+"/"+tt.speaks, func(t *testing.T) {
				t.Parallel()
				testCServer(t, path, tt.wire, tt.speaks)
			})
		}
	}
}

func testCServer(t *testing.T, path, wire, speaks string) {
	code := uint32(0xC0000409) // all 32 bits are passed on
	s := start(t, Options{Flags: []string{"--wire=" + wire, "--log-level=off"}, Command: []string{path, speaks, fmt.Sprint(code)}})
	var noise strings.Builder
	for id, text := range []string{"", "x", strings.Repeat("long ", 10000), "\x1a ^Z", "é\u2028"} {
		request := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m","params":["%s"]}`, id, text)
		if speaks == "stdio" && strings.Contains(text, "\x1a") {
			continue // ends a text
		}
		s.Send(request + "\n")
		s.ExpectLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"bytes":%d}}`, id, len(request)+1))
		fmt.Fprintf(&noise, "<before %d>\n<after %d>\n", id, id)
	}
	noise.WriteString("<exit>\n")
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{Code: int(code)})
	if got := strings.ReplaceAll(s.Stderr(), "\r\n", "\n"); got != noise.String() {
		t.Errorf("standard error has %q, want %q", got, noise.String())
	}
}
