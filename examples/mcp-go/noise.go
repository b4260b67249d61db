package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// captured is os.Stdout as it was before guard.Open: what a library holds
// that made its logger at start.
var captured = slog.New(slog.NewTextHandler(os.Stdout, nil))

// noises are the tools. Each writes text where a server must not.
var noises = map[string]func(text string) error{
	"print": func(text string) error {
		fmt.Println(text)
		return nil
	},
	"print_unfinished": func(text string) error {
		fmt.Print(text) // no line end: a progress bar
		return nil
	},
	"print_message": func(text string) error {
		// A debug print that looks like an answer of ours.
		fmt.Printf(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%q}]}}`+"\n", text)
		return nil
	},
	"native_write": func(text string) error {
		// What a C library does: descriptor 1, past os.Stdout.
		_, err := syscall.Write(syscall.Stdout, []byte(text+"\n"))
		return err
	},
	"captured_log": func(text string) error {
		captured.Info(text)
		return nil
	},
	"child_prints": func(text string) error { return runChild("print", text) },
	"child_reads":  func(text string) error { return runChild("read", text) },
}

// stray is what a tool prints for one call.
func stray(tool, note string) string { return "<stray " + tool + " " + note + ">" }

type call struct {
	Note string `json:"note" jsonschema:"comes back in the answer and in the noise"`
}

// addTools adds one tool for each kind of noise. Each makes its noise and
// then answers "TOOL NOTE".
func addTools(server *mcp.Server) {
	for tool, makeNoise := range noises {
		answer := func(_ context.Context, _ *mcp.CallToolRequest, in call) (*mcp.CallToolResult, any, error) {
			if err := makeNoise(stray(tool, in.Note)); err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{
				Content: []mcp.Content{&mcp.TextContent{Text: tool + " " + in.Note}},
			}, nil, nil
		}
		mcp.AddTool(server, &mcp.Tool{Name: tool, Description: "Makes noise: " + tool + "."}, answer)
	}
}

// runChild runs this program as a child that has our standard descriptors, as
// a build tool or a script would be run.
func runChild(args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, append([]string{"child"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// child is what the child does: it prints, or reads standard input to its end
// and prints how much there was.
func child(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: child print|read TEXT")
	}
	switch args[0] {
	case "print":
		fmt.Println(args[1])
		return nil
	case "read":
		n, err := io.Copy(io.Discard, os.Stdin)
		if err != nil {
			return err
		}
		fmt.Printf("%s read %d bytes\n", args[1], n)
		return nil
	}
	return fmt.Errorf("there is no child %q", args[0])
}
