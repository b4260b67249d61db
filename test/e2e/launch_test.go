package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// mirror sends back every byte.
var mirror = role("mirror", func() int {
	in, out := handedWire()
	if _, err := io.Copy(out, in); err != nil {
		fmt.Fprintf(os.Stderr, "mirror: %v\n", err)
		return 1
	}
	return 0
})

// Every byte arrives as it was sent, in both directions, and there is nothing
// else on the wire or on standard error.
func TestExactBytes(t *testing.T) {
	var every strings.Builder
	for b := range 256 {
		every.WriteByte(byte(b))
	}
	for _, sockets := range []bool{false, true} {
		if sockets && runtime.GOOS == "windows" {
			continue
		}
		for _, tt := range []struct{ name, data string }{
			{"nothing", ""},
			{"a line", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
			{"no line end", `{"half`},
			{"line ends of all kinds", "a\r\nb\rc\n\r\n\n\n\u2028\u2029\u0085"},
			{"no text", "\x00\xff\xfe\xc3(\xef\xbb\xbf"},
			{"every byte", every.String()},
			{"header frame", "Content-Length: 2\r\n\r\n{}"},
		} {
			t.Run(fmt.Sprintf("%s/sockets=%v", tt.name, sockets), func(t *testing.T) {
				t.Parallel()
				s := start(t, Options{Role: mirror, Sockets: sockets})
				s.Send(tt.data)
				s.Expect(tt.data)
				finish(s)
				wantStderr(s, "")
			})
		}
	}
}

const megabytes = 5 << 20

// swapper sends and receives megabytes at the same time and then sends the sum
// of what it has received.
var swapper = role("swapper", func() int {
	in, out := handedWire()
	sent := make(chan error)
	go func() {
		_, err := io.WriteString(out, randomText(1))
		sent <- err
	}()
	sum := sha256.New()
	n, err := io.Copy(sum, in)
	if sendErr := <-sent; sendErr != nil || err != nil {
		fmt.Fprintf(os.Stderr, "swapper: send: %v, receive: %v\n", sendErr, err)
		return 1
	}
	fmt.Fprintf(out, "%d %x\n", n, sum.Sum(nil))
	return 0
})

// randomText is megabytes of bytes of every value.
func randomText(seed uint64) string {
	random := rand.New(rand.NewPCG(seed, seed))
	text := make([]byte, megabytes)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	return string(text)
}

func TestMegabytesBothWays(t *testing.T) {
	for _, slow := range []bool{false, true} {
		t.Run(fmt.Sprintf("slow client=%v", slow), func(t *testing.T) {
			t.Parallel()
			o := Options{Role: swapper}
			var theirs, ours *os.File
			if slow {
				// This client reads nothing until it has sent everything.
				var err error
				if ours, theirs, err = os.Pipe(); err != nil {
					t.Fatal(err)
				}
				defer theirs.Close()
				o.Stdout = theirs
			}
			s := start(t, o)
			mine := randomText(2)
			s.Send(mine)
			if slow {
				theirs.Close()
				s.out = s.read(ours, "<")
			}
			s.Expect(randomText(1))
			s.CloseStdin()
			s.ExpectLine(fmt.Sprintf("%d %x", megabytes, sha256.Sum256([]byte(mine))))
			s.ExpectEnd()
			s.ExpectExit(Status{})
		})
	}
}

// Arguments reach the server byte for byte, and none is taken for ours.
func TestArguments(t *testing.T) {
	odd := []string{
		"", " ", "a b", "\t", "line\nfeed", "cr\r\n", `"`, `'`, `\`, `a\"b`, `\\`, `trailing\`, "$HOME", "%PATH%", "*", "`id`",
		"é", "日本", "-h", "--help", "--version", "--stray=null", "--", "-", "=", "--wire", "",
	}
	if runtime.GOOS != "windows" {
		odd = append(odd, "\xff\xfe", "half \xc3")
	}
	s := startServer(t, Options{RoleArgs: odd})
	var got []string
	for _, arg := range askReport(s).Args {
		got = append(got, string(arg))
	}
	if want := fmt.Sprintf("%q", odd); fmt.Sprintf("%q", got) != want {
		t.Errorf("arguments are %q, want %s", got, want)
	}
	finish(s)
}

func TestEnvironment(t *testing.T) {
	s := startServer(t, Options{
		Env: []string{"INHERITED=as it was", "CHANGED=before", "EMPTIED=before", "WIREGUARDRUN_LOG_LEVEL=debug"},
		Flags: []string{
			"--log-level=info",
			"--env=CHANGED=first", "--env", "CHANGED=last", "--env=EMPTIED=", "--env=ADDED=a=b c\n",
		},
	})
	report := askReport(s)
	for _, tt := range []struct{ name, want string }{
		{"INHERITED", "as it was"},
		{"CHANGED", "last"},
		{"EMPTIED", ""},
		{"ADDED", "a=b c\n"},
		{"WIREGUARDRUN_LOG_LEVEL", "debug"}, // for a guard that the server itself starts
	} {
		if got, ok := report.getenv(tt.name); !ok || got != tt.want {
			t.Errorf("%s is %q (set: %v), want %q", tt.name, got, ok, tt.want)
		}
	}
	seen := map[string]bool{}
	for _, kv := range report.Env {
		name, _, _ := strings.Cut(string(kv), "=")
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
	finish(s)
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(real, "sub")
	for _, tt := range []struct {
		name  string
		flags []string
		env   []string
		want  string
	}{
		{"ours", nil, nil, real},
		{"relative", []string{"--cwd=sub"}, nil, sub},
		{"absolute", []string{"--cwd", sub}, nil, sub},
		{"by environment", nil, []string{"WIREGUARDRUN_CWD=sub"}, sub},
		{"flag before environment", []string{"--cwd=."}, []string{"WIREGUARDRUN_CWD=sub"}, real},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{Dir: dir, Flags: tt.flags, Env: tt.env})
			got, err := filepath.EvalSymlinks(askReport(s).Dir)
			if err != nil || got != tt.want {
				t.Errorf("the directory is %s (%v), want %s", got, err, tt.want)
			}
			finish(s)
		})
	}
}

// The guard's settings may come from the environment.
func TestFlagsByEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		flags       []string
		stderr      string
	}{
		{"none", "", nil, "stray\nfor people\n"},
		{"WIREGUARDRUN_STRAY", "null", nil, "for people\n"},
		{"WIREGUARDRUN_STRAY", "null", []string{"--stray=stderr"}, "stray\nfor people\n"},
		{"WIREGUARDRUN_STRAY", "", nil, "stray\nfor people\n"},
		{"WIREGUARDRUN_OFF", "0", nil, "stray\nfor people\n"},
	} {
		t.Run(fmt.Sprint(tt.name, "=", tt.value, tt.flags), func(t *testing.T) {
			s := startServer(t, Options{Flags: tt.flags, Env: []string{tt.name + "=" + tt.value}})
			order(s, `out "stray\n"`, `err "for people\n"`)
			finish(s)
			wantStderr(s, tt.stderr)
		})
	}
}
