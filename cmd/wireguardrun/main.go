// Command wireguardrun runs a server that speaks a protocol over stdin and
// stdout so that nothing but the protocol reaches the client.
package main

import "os"

func main() { os.Exit(run(os.Args)) }
