// Command mcp-go is a noisy MCP server on the official Go SDK. Nothing that
// it or its children print reaches the client, because its transport is the
// wire that package guard keeps apart from standard output:
//
//	wireguardrun -- mcp-go
//
// Started without wireguardrun it claims standard input and output itself,
// which leaves out only what is printed before guard.Open. Two flags show what
// would go wrong: -early prints before that, and -stdio leaves the guard out
// and serves on standard input and output.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wireguardrun/wireguardrun/guard"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mcp-go: ")
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "child" {
		return child(args[1:])
	}
	if slices.Contains(args, "-early") {
		fmt.Println(stray("early", "start"))
	}
	if slices.Contains(args, "-stdio") {
		server := mcp.NewServer(&mcp.Implementation{Name: "noisy", Version: "1.0.0"}, nil)
		addTools(server)
		return server.Run(ctx, &mcp.StdioTransport{})
	}
	return serve(ctx)
}

func serve(ctx context.Context) error {
	// snippet:begin
	wire, err := guard.Open() // prints no longer reach the client
	if err != nil {
		return err
	}
	defer wire.Release()

	server := mcp.NewServer(&mcp.Implementation{Name: "noisy", Version: "1.0.0"}, nil)
	addTools(server)
	return server.Run(ctx, &mcp.IOTransport{Reader: wire, Writer: wire})
	// snippet:end
}
