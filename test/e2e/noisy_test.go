//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Servers that know nothing of wireguardrun and print where only the protocol
// belongs. There is one for each language, and all do the same: each request's
// method names a kind of noise, which the server makes together with its
// answer. The kinds that are not here: <start> before the first request, and
// <exit> after the end of the input, which no line feed ends.
var noisyKinds = []string{
	"log_messages",      // the request and the answer in lines of a log, then the answer
	"log_sent",          // the answer, then the same in a line of a log
	"log_object",        // the answer in an object of a structured log, then the answer
	"before",            // a line before the answer
	"same_line",         // text in front of the answer
	"after",             // a line after the answer
	"after_same_line",   // text behind the answer
	"native",            // a line, past what the language buffers
	"native_unfinished", // the same without line feed
	"child",             // a line of a subprocess
	"child_unfinished",  // the same without line feed
	"threads",           // lines of three threads
	"progress",          // a bar that returns to the start of the line
	"escape",            // escape sequences in front of the answer
	"brace",             // a line that begins like a message
	"own",               // no noise: a notification of the server's own
}

// noisyFraming says how frames look.
type noisyFraming func(body string) string

func lineFrame(body string) string { return body + "\n" }

func headerFrame(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

func noisyRequest(id int, kind string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s"}`, id, kind)
}

func noisyAnswer(id int, kind string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, id, kind)
}

// ownMessage is one that no request asks for.
const ownMessage = `{"jsonrpc":"2.0","method":"own"}`

// frames is what the client has to get.
func (frame noisyFraming) frames(id int, kind string) string {
	own := ""
	if kind == "own" {
		own = frame(ownMessage)
	}
	return own + frame(noisyAnswer(id, kind))
}

// noisyNoise is what the server prints beside that, in order.
func noisyNoise(id int, kind string) []string {
	answer := noisyAnswer(id, kind)
	switch kind {
	case "log_messages":
		return []string{"recv " + noisyRequest(id, kind) + "\n", "send " + answer + "\n"}
	case "log_sent":
		return []string{"sent " + answer + "\n"}
	case "log_object":
		return []string{`{"level":"info","message":` + answer + "}\n"}
	case "threads":
		return []string{strings.Repeat("<threads>\n", 27)}
	case "progress":
		return []string{"\r<progress> 10%\r<progress> 50%\r<progress> 100%"}
	case "escape":
		return []string{"\x1b[1m<escape>\x1b[0m"}
	case "brace":
		return []string{"{ <brace>\n"}
	case "before", "after", "native", "child":
		return []string{"<" + kind + ">\n"}
	case "own":
		return nil
	}
	return []string{"<" + kind + ">"}
}

func checkNoisy(t *testing.T, o Options, frame noisyFraming, kinds []string) {
	t.Helper()
	t.Parallel()
	// Without the mode that start adds, and with nothing on standard error but
	// the noise.
	guarded := o
	guarded.Bare, guarded.Prefix = true, []string{wireguardrun, "--log-level=off", "--"}
	s := start(t, guarded)
	noise := []string{"<start>\n"}
	id := 0
	for _, kind := range kinds { // one after the other
		id++
		s.Send(frame(noisyRequest(id, kind)))
		s.Expect(frame.frames(id, kind))
		noise = append(noise, noisyNoise(id, kind)...)
	}
	var requests, frames strings.Builder
	for range 3 { // and all at once
		for _, kind := range kinds {
			id++
			requests.WriteString(frame(noisyRequest(id, kind)))
			frames.WriteString(frame.frames(id, kind))
			noise = append(noise, noisyNoise(id, kind)...)
		}
	}
	noise = append(noise, "<exit>")
	s.Send(requests.String())
	s.Expect(frames.String())
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{})
	// White space between noise and an answer may go with either.
	flat := strings.NewReplacer("\n", "", " ", "")
	if got, want := flat.Replace(s.Stderr()), flat.Replace(strings.Join(noise, "")); got != want {
		t.Errorf("standard error has\n%s\nwant\n%s", s.Stderr(), strings.Join(noise, ""))
	}

	// Bare, all of that is on the wire.
	o.Bare = true
	stdout, _, _ := run(t, o, frame(noisyRequest(1, "before"))+frame(noisyRequest(2, "same_line")))
	expectInOrder(t, "the bare server's standard output", stdout, []string{
		"<start>\n", "<before>\n", frame.frames(1, "before"), "<same_line>" + frame.frames(2, "same_line"), "<exit>",
	})
}

// expectInOrder checks that text has all the parts, each after the one before.
func expectInOrder(t *testing.T, name, text string, parts []string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("%s lacks %q in %q, which is what is left of\n%s", name, part, rest, text)
		}
		rest = after
	}
}

func TestNoisyNodeServer(t *testing.T) {
	checkNoisy(t, Options{Command: []string{needs(t, "node"), filepath.Join("testdata", "noisy", "server.mjs")}},
		lineFrame, noisyKinds)
}

// With headers a message in a log is never a frame, so that of the logs only
// one kind is left.
func TestNoisyHeadersServer(t *testing.T) {
	kinds := slices.DeleteFunc(slices.Clone(noisyKinds), func(kind string) bool {
		return kind == "log_sent" || kind == "log_object" || kind == "threads"
	})
	checkNoisy(t, Options{Command: []string{needs(t, "node"), filepath.Join("testdata", "noisy", "headers.mjs")}},
		headerFrame, kinds)
}

func TestNoisyPythonServer(t *testing.T) {
	checkNoisy(t, Options{
		Command: []string{needs(t, "python3"), filepath.Join("testdata", "noisy", "server.py")}, Env: pythonEnv,
	}, lineFrame, noisyKinds)
}

func TestNoisyCServer(t *testing.T) {
	server := filepath.Join(t.TempDir(), "server")
	cmd := exec.Command(needs(t, "cc"), "-pthread", "-o", server, filepath.Join("testdata", "noisy", "server.c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compiling the server: %v\n%s", err, out)
	}
	checkNoisy(t, Options{Command: []string{server}}, lineFrame, noisyKinds)
}

func TestNoisyJavaServer(t *testing.T) {
	// Who has only the runtime lacks what runs a source file.
	if out, err := exec.Command(needs(t, "javac"), "-version").CombinedOutput(); err != nil {
		cannotRun(t, "a Java development kit is needed: javac -version: %v\n%s", err, out)
	}
	checkNoisy(t, Options{Command: []string{
		// Java itself says on standard error what it takes from these.
		"env", "-u", "JAVA_TOOL_OPTIONS", "-u", "JDK_JAVA_OPTIONS", "-u", "_JAVA_OPTIONS",
		needs(t, "java"), filepath.Join("testdata", "noisy", "Server.java"),
	}}, lineFrame, noisyKinds)
}

func TestNoisyGoServer(t *testing.T) {
	checkNoisy(t, Options{Role: noisyServer}, lineFrame, noisyKinds)
}

var noisyServer = role("noisy-server", func() int {
	fmt.Println("<start>")
	out := bufio.NewWriter(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := serveNoisy(out, lines.Text()); err != nil {
			fmt.Fprintf(os.Stderr, "noisy server: %v\n", err)
			return 1
		}
		if err := out.Flush(); err != nil {
			return 1
		}
	}
	fmt.Print("<exit>")
	return 0
})

// serveNoisy answers one request on out, and prints past it.
func serveNoisy(out *bufio.Writer, request string) error {
	var message struct {
		ID     int
		Method string
	}
	if err := json.Unmarshal([]byte(request), &message); err != nil {
		return err
	}
	kind := message.Method
	answer := noisyAnswer(message.ID, kind)
	child := func(script string) error {
		cmd := exec.Command("sh", "-c", script)
		cmd.Stdout = os.Stdout
		return cmd.Run()
	}
	var err error
	switch kind {
	case "log_messages":
		fmt.Fprintf(out, "recv %s\nsend %s\n", request, answer)
	case "log_sent":
		fmt.Fprintf(out, "%s\nsent %s\n", answer, answer)
		return nil
	case "log_object":
		fmt.Fprintf(out, `{"level":"info","message":%s}`+"\n", answer)
	case "before":
		fmt.Println("<before>")
	case "same_line":
		fmt.Print("<same_line>")
	case "after":
		fmt.Fprintf(out, "%s\n<after>\n", answer)
		return nil
	case "after_same_line":
		fmt.Fprintf(out, "%s <after_same_line>\n", answer)
		return nil
	case "native":
		_, err = syscall.Write(1, []byte("<native>\n"))
	case "native_unfinished":
		_, err = syscall.Write(1, []byte("<native_unfinished>"))
	case "child":
		err = child(`echo "<child>"`)
	case "child_unfinished":
		err = child(`printf "<child_unfinished>"`)
	case "threads":
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for range 9 {
					fmt.Println("<threads>")
				}
			})
		}
		group.Wait()
	case "progress":
		for _, n := range []int{10, 50, 100} {
			fmt.Printf("\r<progress> %d%%", n)
		}
	case "escape":
		fmt.Print("\x1b[1m<escape>\x1b[0m")
	case "brace":
		fmt.Println("{ <brace>")
	case "own":
		fmt.Fprintln(out, ownMessage)
	}
	fmt.Fprintln(out, answer)
	return err
}
