package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// The roles that the binary plays for itself behind the hidden --role flag.
const (
	roleServer = "server"
	roleNoise  = "noise" // a subprocess that prints on the stdout it inherited
	roleThief  = "thief" // a subprocess that reads the stdin it inherited
)

// The noise. No times and no process ids, so that two sessions print the same.
const (
	banner      = "noisy-server 1.0: 5 tools loaded\n"
	progressBar = "\r[#  ]\r[## ]\r[###]" // no newline: the next reply is glued to it
	nativePrint = "libnative: using 4 threads\n"
	logLine     = `{"level":"info","msg":"tool called","id":4}` + "\n"
	childPrint  = "subprocess: cache is warm\n"
	goodbye     = "noisy-server: goodbye\n"
)

// maxLine bounds one request, in bytes.
const maxLine = 1 << 18

type object = map[string]any

// tools make their noise before the reply.
var tools = map[string]func() error{
	"native": func() error { // past the language's own streams
		_, err := syscall.Write(syscall.Stdout, []byte(nativePrint))
		return err
	},
	"log":   func() error { return printStray(logLine) },
	"spawn": func() error { return spawn(roleNoise) },
	"steal": func() error { return spawn(roleThief) },
	"quiet": func() error { return nil },
}

// Role plays the named role on this process's own standard streams and returns
// the exit code. ok is false if there is no such role.
func Role(name string) (code int, ok bool) {
	switch name {
	case roleServer:
		return serveHanded(), true
	case roleNoise:
		return exitCode(printStray(childPrint)), true
	case roleThief:
		// A guarded thief finds nothing to take, which is no fault of its own.
		_, _ = readLine(os.Stdin)
		return 0, true
	}
	return 0, false
}

// serveHanded is the noisy server: it speaks on the wire that wireguardrun handed
// down, or on descriptors 0 and 1 where there is none, until its input ends. It
// returns the exit code.
func serveHanded() int {
	in, out := os.Getenv("WIREGUARDRUN_IN"), os.Getenv("WIREGUARDRUN_OUT")
	if in == "" && out == "" {
		return exitCode(serve(os.Stdin, os.Stdout))
	}
	// Never closed: the end of the process does that, after the good-bye.
	r, w, err := handedWire(in, out)
	if err != nil {
		return exitCode(err)
	}
	return exitCode(serve(r, w))
}

func serve(in io.Reader, out io.Writer) error {
	if err := printStray(banner); err != nil {
		return err
	}
	for {
		request, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return printStray(goodbye)
		}
		if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		reply := answer(request)
		if reply == nil {
			continue
		}
		// One write, LF included.
		if err := json.NewEncoder(out).Encode(reply); err != nil {
			return fmt.Errorf("write reply: %w", err)
		}
	}
}

// answer returns the reply to one request, nil for what wants none.
func answer(text []byte) object {
	var request struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	reply := object{"jsonrpc": "2.0", "id": nil}
	if err := json.Unmarshal(text, &request); err != nil {
		reply["error"] = object{"code": -32700, "message": err.Error()}
		return reply
	}
	if request.ID == nil {
		return nil
	}
	reply["id"] = request.ID
	if result, code, err := call(request.Method, request.Params.Name); err != nil {
		reply["error"] = object{"code": code, "message": err.Error()}
	} else {
		reply["result"] = result
	}
	return reply
}

// call returns the result, or an error with its JSON-RPC code.
func call(method, tool string) (result object, code int, err error) {
	switch method {
	case "initialize":
		return object{
			"protocolVersion": "2025-06-18",
			"capabilities":    object{"tools": object{}},
			"serverInfo":      object{"name": "noisy-server", "version": "1.0"},
		}, 0, nil
	case "ping":
		return object{}, 0, nil
	case "tools/list":
		var list []object
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			list = append(list, object{"name": name, "inputSchema": object{"type": "object"}})
		}
		return object{"tools": list}, -32603, printStray(progressBar)
	case "tools/call":
		makeNoise, ok := tools[tool]
		if !ok {
			return nil, -32602, fmt.Errorf("no such tool: %q", tool)
		}
		done := []object{{"type": "text", "text": tool + ": done"}}
		return object{"content": done}, -32603, makeNoise()
	}
	return nil, -32601, fmt.Errorf("no such method: %q", method)
}

// readLine reads up to the next LF, a byte at a time, since it must take nothing
// behind it: the next line may be for another reader of the same pipe. With
// server and thief both reading so, a theft is the same every time.
func readLine(r io.Reader) ([]byte, error) {
	var text []byte
	var next [1]byte
	for len(text) < maxLine {
		n, err := r.Read(next[:])
		switch {
		case n == 1 && next[0] == '\n':
			return text, nil
		case n == 1:
			text = append(text, next[0])
		case errors.Is(err, io.EOF) && len(text) > 0:
			return text, nil
		case err != nil:
			return nil, err
		}
	}
	return nil, fmt.Errorf("line longer than %d bytes", maxLine)
}

// printStray prints on the standard output, as any library might.
func printStray(s string) error {
	_, err := io.WriteString(os.Stdout, s)
	return err
}

// spawn runs this program in another role, on the streams that we have.
func spawn(role string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "demo", "--role="+role)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// exitCode says on stderr why a role failed; there is nobody else to tell.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(os.Stderr, "wireguardrun demo:", err)
	return 1
}
