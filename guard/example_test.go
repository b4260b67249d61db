package guard_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wireguardrun/wireguardrun/guard"
)

// None of the examples has an Output comment: a claim would divert what the
// test runner reads.

// A server that answers line by line. Its prints end up on standard error.
func Example() {
	wire, err := guard.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer wire.Release()

	for lines := bufio.NewScanner(wire); lines.Scan(); {
		fmt.Println("a print that is not on the wire")
		if _, err := fmt.Fprintf(wire, "got %s\n", lines.Text()); err != nil {
			return
		}
	}
}

// Open serves the wire that a parent wireguardrun handed down, and claims
// standard input and output where there is none.
func ExampleOpen() {
	wire, err := guard.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer wire.Release()

	request, err := bufio.NewReader(wire).ReadString('\n')
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(wire, "got %s", request)
}

// Claim takes standard input and output, and reports how far it has come.
func ExampleClaim() {
	wire, err := guard.Claim()
	if err != nil {
		log.Fatal(err)
	}
	defer wire.Release()

	if state := wire.State(); state.In != guard.Diverted || state.Out != guard.Diverted {
		// Served all the same, but a direction that is in place is unprotected.
		log.Printf("in is %s, out is %s: %v", state.In, state.Out, wire.Err())
	}
	_, _ = wire.Write([]byte("ready\n"))
}

// The transport of the official Go SDK for the Model Context Protocol.
func ExampleOpen_mcp() {
	wire, err := guard.Open()
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "example", Version: "1.0.0"}, nil)
	err = server.Run(context.Background(), &mcp.IOTransport{Reader: wire, Writer: wire})
	if err != nil {
		log.Print(err)
	}
}

// What the process prints goes to a file of its own.
func ExampleDivertTo() {
	strays, err := os.OpenFile("strays.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	wire, err := guard.Claim(guard.DivertTo(strays))
	_ = strays.Close() // the claim has a duplicate
	if err != nil {
		log.Fatal(err)
	}
	defer wire.Release()

	fmt.Println("this is in strays.log")
}

// Only the way out is guarded; the program goes on to read standard input.
func ExampleOnly() {
	wire, err := guard.Claim(guard.Only(guard.Out))
	if err != nil {
		log.Fatal(err)
	}
	defer wire.Release()

	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_, _ = fmt.Fprintf(wire, "got %s\n", lines.Text())
	}
}

// Something in the program quits when standard input ends.
func ExampleLifeline() {
	wire, err := guard.Open(guard.Lifeline())
	if err != nil {
		log.Fatal(err)
	}
	defer wire.Release()

	_, _ = wire.Write([]byte("ready\n"))
}
