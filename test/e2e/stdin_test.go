package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"
)

// The server's own descriptor 0 has nothing to read: a print of the client's
// never ends up there.
func TestStdinNull(t *testing.T) {
	for _, flags := range [][]string{nil, {"--stdin=null"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			s := startServer(t, Options{Flags: flags})
			if got := ask(s, "stdin"); got != "0 bytes, EOF" {
				t.Errorf("the server reads %s from descriptor 0", got)
			}
			finish(s)
		})
	}
}

// lifelineReader reads descriptor 0, and tells when that ends. Meanwhile it
// mirrors the wire, whose end does not end it.
var lifelineReader = role("lifeline-reader", func() int {
	in, out := handedWire()
	ended := make(chan string, 1)
	go func() {
		text, err := io.ReadAll(os.Stdin)
		ended <- fmt.Sprintf("lifeline ended: %q, %v\n", text, err)
	}()
	if _, err := io.Copy(out, in); err != nil {
		return 1
	}
	select {
	case end := <-ended:
		io.WriteString(out, "before the wire\n"+end)
		return 2
	default:
	}
	io.WriteString(out, "wire ended\n")
	return 0
})

// A lifeline is open and without data, whatever the client does.
func TestStdinLifeline(t *testing.T) {
	for _, o := range []Options{
		{Flags: []string{"--stdin=lifeline"}},
		{Env: []string{"WIREGUARDRUN_STDIN=lifeline"}},
	} {
		t.Run(fmt.Sprint(o.Flags, o.Env), func(t *testing.T) {
			o.Role = lifelineReader
			s := start(t, o)
			s.Send("one\ntwo\n")
			s.Expect("one\ntwo\n")
			s.CloseStdin()
			s.ExpectLine("wire ended")
			s.ExpectEnd()
			s.ExpectExit(Status{})
		})
	}
}

// The wire is whatever our descriptor 0 is.
func TestStdinIsFile(t *testing.T) {
	data := bytes.Repeat([]byte("a line of the file\n"), 10000)
	path := t.TempDir() + "/in"
	writeFile(t, path, string(data))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := start(t, Options{Role: mirror, Stdin: f})
	s.Expect(string(data))
	s.ExpectEnd()
	s.ExpectExit(Status{})
	wantStderr(s, "")
}

func TestStdinIsNull(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := startServer(t, Options{Stdin: null})
	s.ExpectEnd()
	s.ExpectExit(Status{})
	wantStderr(s, "")
}
