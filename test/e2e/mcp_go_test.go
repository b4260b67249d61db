package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goTools are the tools of examples/mcp-go; each makes its own kind of noise.
var goTools = []string{
	"captured_log", "child_prints", "child_reads", "native_write",
	"print", "print_message", "print_unfinished",
}

// stdinReader is the tool, of every example, whose subprocess reads standard
// input to its end. In the relay's modes that comes with the client's: what an
// aware server has there is a lifeline, and what an unmodified one has is the
// wire.
const stdinReader = "child_reads"

func without(tools []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(tools), func(tool string) bool { return slices.Contains(some, tool) })
}

// buildGoServer builds examples/mcp-go once for all tests.
var buildGoServer = sync.OnceValues(func() (string, error) { return goBuild("./examples/mcp-go") })

func goServer(t *testing.T) string {
	t.Helper()
	bin, err := buildGoServer()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// goClient is a session of the Go SDK's own client with a command.
type goClient struct {
	*mcp.ClientSession
	stderr *syncBuffer // the command's
	log    *syncBuffer // every message, and every error, of the client's transport
}

// connectGo starts the command through the SDK's CommandTransport, and returns
// what its Connect does.
func connectGo(t *testing.T, argv ...string) (*goClient, error) {
	t.Helper()
	c := &goClient{stderr: new(syncBuffer), log: new(syncBuffer)}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = environ()
	cmd.Stderr = c.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	var err error
	c.ClientSession, err = client.Connect(limited(t), &mcp.LoggingTransport{
		Transport: &mcp.CommandTransport{Command: cmd, TerminateDuration: patience},
		Writer:    c.log,
	}, nil)
	t.Cleanup(func() {
		if cmd.Process != nil {
			cmd.Process.Kill() // does nothing after an orderly end
		}
		if t.Failed() {
			log := c.log.String()
			t.Logf("the end of the client's log:\n%s\nstandard error:\n%s", log[max(0, len(log)-4000):], c.stderr)
		}
	})
	return c, err
}

// call calls one tool and checks its answer.
func (c *goClient) call(t *testing.T, tool, note string) error {
	res, err := c.CallTool(limited(t), &mcp.CallToolParams{
		Name: tool, Arguments: map[string]string{"note": note},
	})
	if err != nil {
		return fmt.Errorf("calling %s: %w", tool, err)
	}
	var text string
	if len(res.Content) == 1 {
		if tc, ok := res.Content[0].(*mcp.TextContent); ok {
			text = tc.Text
		}
	}
	if want := tool + " " + note; res.IsError || text != want {
		got, _ := res.MarshalJSON()
		return fmt.Errorf("%s answers %s, want %q", tool, got, want)
	}
	return nil
}

func TestGoSDKServer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		argv  []string // in front of the server
		flags []string // the server's: -early is noise before it has claimed anything
		calls []string // tools
	}{
		{"handed down", []string{wireguardrun, "--wire=fds", "--"}, []string{"-early"}, goTools},
		{"relayed", []string{wireguardrun, "--"}, []string{"-early"}, without(goTools, stdinReader)},
		// The server prints answers of its own, with identifiers of the past.
		{"unmodified", []string{wireguardrun, "--strict-ids", "--"}, []string{"-early", "-stdio"}, without(goTools, stdinReader)},
		{"on its own", nil, nil, goTools},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := []string{}
			if slices.Contains(tt.flags, "-early") {
				want = append(want, noiseOf("early", "start"))
			}
			c, err := connectGo(t, slices.Concat(tt.argv, []string{goServer(t)}, tt.flags)...)
			if err != nil {
				t.Fatalf("connecting: %v", err)
			}

			var tools []string
			for tool, err := range c.Tools(limited(t), nil) {
				if err != nil {
					t.Fatalf("listing the tools: %v", err)
				}
				tools = append(tools, tool.Name)
			}
			if got, want := fmt.Sprint(tools), fmt.Sprint(goTools); got != want {
				t.Errorf("tools are %s, want %s", got, want)
			}

			for _, tool := range tt.calls {
				if err := c.call(t, tool, "alone"); err != nil {
					t.Error(err)
				}
				want = append(want, noiseOf(tool, "alone"))
			}
			var calls sync.WaitGroup
			for round := range 5 {
				for _, tool := range tt.calls {
					note := fmt.Sprintf("crowd-%d", round)
					want = append(want, noiseOf(tool, note))
					calls.Go(func() {
						if err := c.call(t, tool, note); err != nil {
							t.Error(err)
						}
					})
				}
			}
			calls.Wait()

			// Before the end: at the end the client may read from what it has
			// closed itself.
			if log := c.log.String(); strings.Contains(log, "read error") {
				t.Error("the client's transport has a read error")
			}
			// The client closes the wire, and the server has to end by itself,
			// with success: else Close returns an error.
			if err := c.Close(); err != nil {
				t.Errorf("closing the session: %v", err)
			}
			for _, noise := range want {
				if !strings.Contains(c.stderr.String(), noise) {
					t.Errorf("standard error lacks %q", noise)
				}
			}
			if strings.Contains(c.log.String(), "stray") {
				t.Error("the client's transport has stray output")
			}
		})
	}
}

// noiseOf is what a call of a tool of either example leaves on standard error.
func noiseOf(tool, note string) string {
	noise := "<stray " + tool + " " + note + ">"
	if tool == stdinReader {
		noise += " read 0 bytes\n"
	}
	return noise
}

// The server without the guard, to show that its noise breaks a client.
func TestGoSDKServerUnguarded(t *testing.T) {
	c, err := connectGo(t, goServer(t), "-stdio")
	if err != nil {
		t.Fatalf("connecting to the silent server: %v", err)
	}
	if err := c.call(t, "print", "alone"); err == nil {
		t.Error("the client takes an answer with noise in front of it")
	}
	c.Close()

	if c, err := connectGo(t, goServer(t), "-early"); err == nil {
		t.Error("the client takes a server that prints before it claims the wire")
		c.Close()
	}
}

// initialize is a client's first message, by hand.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}` + "\n"

// An end of the input ends the server, without a byte more on the wire.
func TestGoSDKServerEnds(t *testing.T) {
	for _, o := range []Options{
		{Flags: []string{"--wire=fds"}, Command: []string{goServer(t)}},
		{Flags: []string{"--wire=auto"}, Command: []string{goServer(t)}},
		{Flags: []string{"--wire=auto"}, Command: []string{goServer(t), "-stdio"}},
	} {
		s := start(t, o)
		initializeAndEnd(s)
	}
}

// initializeAndEnd is a whole session with one of the example servers: the
// client's first message, the answer, and an end of the input that ends it all.
func initializeAndEnd(s *session) {
	s.t.Helper()
	s.Send(initialize)
	if line := s.ReadLine(); !strings.Contains(line, `"serverInfo":{"name":"noisy"`) {
		s.t.Fatalf("the answer is %s", line)
	}
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{})
}

// syncBuffer is a bytes.Buffer for many goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
